// The NCCL module loads, and says what it found, whether there is a GPU or not.
#include "trainer/nccl_module.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "store/tcp_store.h"
#include "store/torch_store.h"
#include "trainer/group/epoch_group.h"
#include "trainer/numerics/profile_range.h"
#include "trainer/state/device.h"

namespace keel {
namespace {

TEST(NcclModule, LoadsAndDescribesWhatItFound) {
  const Result<NcclModule*> module = OpenNcclModule();
  ASSERT_TRUE(module.ok()) << module.error().message;
  const std::string description = (*module)->Description();
  EXPECT_THAT(description, testing::HasSubstr("NCCL 2."));
  if ((*module)->DeviceCount() == 0) {
    EXPECT_THAT(description, testing::StartsWith("no GPU: "));
  } else {
    EXPECT_THAT(description, testing::HasSubstr(" GPU"));
  }
}

TEST(NcclModule, AGpuThatIsNotThereIsRefusedInWords) {
  const auto host = TcpStoreHost::Open({.bind = "127.0.0.1"});
  ASSERT_TRUE(host.ok()) << host.error().message;
  const auto store = TcpStore::Connect({.host = "127.0.0.1", .port = (*host)->port()}, {});
  ASSERT_TRUE(store.ok()) << store.error().message;
  EpochGroup::Spec spec;
  spec.store = TorchStoreOf(**store);
  spec.prefix = "g";
  spec.gpu = 99;
  const auto group = EpochGroup::Build(spec, CancelToken::Never());
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().code, Code::kNoDevice);
  EXPECT_THAT(group.error().message, testing::HasSubstr("GPU 99 is not there"));
}

// The module was compiled with the headers beside this LibTorch; what it finds may be newer.
TEST(NcclModule, FindsTheNcclThatItWasCompiledFor) {
  const Result<NcclModule*> module = OpenNcclModule();
  ASSERT_TRUE(module.ok()) << module.error().message;
  const auto version = reinterpret_cast<decltype(&ncclGetVersion)>(
      dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  ASSERT_NE(version, nullptr);
  int found = 0;
  ASSERT_EQ(version(&found), ncclSuccess);
  EXPECT_GE(found, NCCL_VERSION_CODE);
  for (const char* const call :
       {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError", "ncclCommFinalize",
        "ncclCommAbort", "ncclSend", "ncclRecv", "ncclAllReduce",
        "ncclGroupStart", "ncclGroupEnd", "ncclGetErrorString", "ncclGetLastError"}) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, call), nullptr) << call;
  }
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "ncclCommRevoke") != nullptr, found >= 22807);
  // What crosses the border to it. NCCL itself checks the size and version in a configuration.
  EXPECT_EQ(sizeof(ncclUniqueId), 128u);
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(config.size, sizeof(ncclConfig_t));
  EXPECT_EQ(config.version, static_cast<unsigned>(NCCL_VERSION_CODE));
  const Result<std::string> id = (*module)->NewId();
  EXPECT_TRUE(!id.ok() || id->size() == sizeof(ncclUniqueId));   // without a GPU it may fail
}

TEST(NcclModule, ADeviceThatIsNotThereIsRefusedInWords) {
  const Status opened = OpenDevice(c10::Device(c10::kCUDA, 99));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::kNoDevice);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("cuda:99 is not there: "));
}

TEST(NcclModule, BringsTheProfilersRanges) {
  ASSERT_TRUE(OpenNcclModule().ok());
  EXPECT_TRUE(torch::profiler::impl::cudaStubs()->enabled());
  const ProfileRange range(c10::Device(c10::kCUDA, 0), "needs no GPU");
}

}  // namespace
}  // namespace keel
