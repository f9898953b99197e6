// The table from LibTorch's exceptions to our codes.
#include "store/catch_torch.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace keel {
namespace {

template <class F>
Error Caught(F&& thrower) {
  const Status status = CatchTorch("testing", std::forward<F>(thrower));
  KEEL_CHECK(!status.ok(), "nothing was thrown");
  return status.error();
}

TEST(CatchTorch, PassesValuesThrough) {
  EXPECT_EQ(*CatchTorch("testing", [] { return 7; }), 7);
  EXPECT_TRUE(CatchTorch("testing", [] {}).ok());
}

TEST(CatchTorch, ClassesDecideFirstThenWords) {
  const auto code = [](auto&& thrower) { return Caught(thrower).code; };
  EXPECT_EQ(code([] { C10_THROW_ERROR(DistNetworkError, "Broken pipe"); }), Code::kPeerLost);
  EXPECT_EQ(code([] { C10_THROW_ERROR(DistNetworkError, "anything"); }), Code::kPeerLost);
  EXPECT_EQ(code([] { C10_THROW_ERROR(DistNetworkError, "Socket Timeout"); }), Code::kTimeout);
  EXPECT_EQ(code([] { C10_THROW_ERROR(DistStoreError, "wait timeout after 5ms"); }),
            Code::kTimeout);
  EXPECT_EQ(code([] { throw std::runtime_error("Connection closed by peer [1.2.3.4]:5"); }),
            Code::kPeerLost);
  EXPECT_EQ(code([] { throw std::runtime_error("Timed out waiting 3000ms for recv"); }),
            Code::kTimeout);
  EXPECT_EQ(code([] { throw std::runtime_error("no CUDA-capable device is detected"); }),
            Code::kNoDevice);
  EXPECT_EQ(code([] { TORCH_CHECK(false, "shapes differ"); }), Code::kForeign);
  EXPECT_EQ(code([] { throw std::bad_alloc(); }), Code::kForeign);
  EXPECT_EQ(code([] { throw 3; }), Code::kForeign);
}

TEST(CatchTorch, AGpuThatIsLostIsNotTheProgramsFault) {
  const auto code = [](const char* text) {
    return Caught([&] { throw std::runtime_error(text); }).code;
  };
  EXPECT_EQ(code("CUDA error: an illegal memory access was encountered"), Code::kNoDevice);
  EXPECT_EQ(code("CUDA error: device-side assert triggered"), Code::kForeign);
}

TEST(CatchTorch, AnOperationThatIsNotDeterministicIsNamedWithACure) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  const Error error = Caught([] {
    at::zeros({3}).put_(at::zeros({1}, at::kLong), at::ones({1}), /*accumulate=*/false);
  });
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  EXPECT_EQ(error.code, Code::kForeign);
  EXPECT_THAT(error.message,
              testing::HasSubstr("put_ does not have a deterministic implementation: its bits "
                                 "would differ from run to run; take another operation"));
  EXPECT_THAT(error.message, testing::Not(testing::HasSubstr("warn_only")));
}

// A step that it ends must not be taken for the program's fault, for which a worker ends.
TEST(CatchTorch, WhatNcclSaysOfALostPeerIsALostPeer) {
  const auto code = [](const std::string& text) {
    return Caught([&] { throw std::runtime_error(text); }).code;
  };
  EXPECT_EQ(code("NCCL Error 6: remote process exited or there was a network error"),
            Code::kPeerLost);
  EXPECT_EQ(code("NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)"),
            Code::kPeerLost);
  EXPECT_EQ(code("NCCL Error 3: internal error - please report this issue to the NCCL developers"),
            Code::kPeerLost);
  const Error aborted = Caught([] {
    C10_THROW_ERROR(DistBackendError, "NCCL communicator was aborted on rank 1. ");
  });
  EXPECT_EQ(aborted.code, Code::kPeerLost);
  EXPECT_EQ(code("NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"),
            Code::kForeign);
  EXPECT_EQ(code("NCCL Error 5: invalid usage (run with NCCL_DEBUG=WARN for details)"),
            Code::kForeign);
}

TEST(CatchTorch, SaysWhatWasBeingDoneAndLeavesTheStackOut) {
  const Error error = Caught([] { TORCH_CHECK(false, "shapes differ"); });
  EXPECT_EQ(error.message, "testing: shapes differ");
}

}  // namespace
}  // namespace keel
