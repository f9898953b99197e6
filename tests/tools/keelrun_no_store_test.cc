// A `keelrun` whose store module turns out not to load, as beside a LibTorch that is gone or in too
// little memory: whoever needs a store must hear of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/harness/free_port.h"
#include "tests/harness/launched.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunNoStore : public ::testing::Test {
 protected:
  // A launcher of its own, with a module beside it that is none.
  void SetUp() override {
    const std::string make = "mkdir -p '" + folder_.path() + "/bin' '" + folder_.path() +
                             "/lib' && cp '" KEEL_BIN_DIR "/keelrun' '" + Keelrun() + "'";
    ASSERT_EQ(std::system(make.c_str()), 0);
    WriteFile(folder_.File("lib/libkeel_store_module.so"), "no module");
  }

  std::string Keelrun() const { return folder_.File("bin/keelrun"); }

  std::unique_ptr<Launched> Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Keelrun());
    return std::make_unique<Launched>(folder_, "job", Launched::Command{std::move(arguments)},
                                      Environment{{"MARK", mark()}});
  }
  std::string mark() const { return folder_.File("mark"); }

  TempDir folder_;
};

// As c10d does: it tries until the port takes it, and then waits for an answer.
constexpr const char* kWantsStore =
    "until exec 5<>/dev/tcp/127.0.0.1/$MASTER_PORT; do sleep 0.1; done 2>/dev/null; "
    "exec sleep 1000";

TEST_F(KeelrunNoStore, AWorkerThatNeedsOneEndsTheJobWithTheReason) {
  const auto job = Start({"--standalone", "--nproc-per-node=2", "--max-restarts=1", "--no-python",
                          "bash", "-c", kWantsStore});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_EQ(job->Count("^job .*no store can be used on this host: the store module "
                       "cannot be loaded: .*libkeel_store_module.so"), 1)
      << job->Output();
  EXPECT_EQ(job->Count("worker-died"), 0) << job->Output();
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunNoStore, ThatOfAPackageForPythonIsForThePyTorchBesideIt) {
  const std::string make = "cd '" + folder_.path() + "' && rm -r lib && mkdir -p torch/lib && "
                           "mkdir package && mv bin package/ && mkdir package/torch2.99 && "
                           "echo no module > package/torch2.99/libkeel_store_module.so";
  ASSERT_EQ(std::system(make.c_str()), 0);
  WriteFile(folder_.File("torch/lib/libtorch_cpu.so"), "no library");
  WriteFile(folder_.File("torch/version.py"), "__all__ = []\n__version__ = '2.99.1+cu130'\n");
  const auto start = [&] {
    return std::make_unique<Launched>(
        folder_, "job", Launched::Command{{folder_.File("package/bin/keelrun"), "--standalone",
                                           "--no-python", "bash", "-c", kWantsStore}},
        Environment{{"MARK", mark()}});
  };
  const auto job = start();
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("PyTorch cannot be loaded: " +
                                       folder_.File("torch/lib/libtorch_cpu.so")));
  WriteFile(folder_.File("torch/version.py"), "__version__ = '2.100.0'\n");
  const auto unknown = start();
  EXPECT_EQ(unknown->ExitCode(), 1) << unknown->Output();
  EXPECT_THAT(unknown->Output(), HasSubstr("PyTorch 2.100 in " + folder_.File("torch") +
                                           " (beside this evenkeel) is none of those that this "
                                           "keelrun was made for (2.99);"));
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunNoStore, AWorkerOfALaterEpochIsNotForgotten) {
  const std::string script = "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3; " +
                             std::string(kWantsStore);
  const auto job = Start({"--standalone", "--nproc-per-node=2", "--max-restarts=1", "--no-python",
                          "bash", "-c", script});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("no store can be used on this host"));
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunNoStore, WorkersInPlaceThatNeedOneAreStopped) {
  const std::string gate = folder_.File("gate");
  const auto job = Start({"--standalone", "--nproc-per-node=2", "--no-python", "bash", "-c",
                          "(until [ -e " + gate + " ]; do sleep 0.1; done; " + kWantsStore +
                              ") & exec " KEEL_BIN_DIR "/survivor " + mark()});
  job->Await("^epoch 1 ", 2);
  EXPECT_EQ(job->Count("no store can be used"), 0) << job->Output();
  WriteFile(gate, "");
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("no store can be used on this host"));
  EXPECT_TRUE(AwaitNoneMarked(mark()));
}

TEST_F(KeelrunNoStore, AHostThatCannotReachTheBoardDoesNotWaitForIt) {
  for (const char* is_host : {"0", "1"}) {
    const uint16_t port = FreePort();
    const auto job = Start({"--nnodes=2", "--rdzv-backend=c10d",
                            "--rdzv-endpoint=127.0.0.1:" + std::to_string(port), "--rdzv-id=job",
                            std::string("--rdzv-conf=is_host=") + is_host, "--no-python", "true"});
    EXPECT_EQ(job->ExitCode(), 1) << is_host << "\n" << job->Output();
    EXPECT_THAT(job->Output(), HasSubstr("no store can be used on this host"));
  }
}

TEST_F(KeelrunNoStore, WorkersThatNeedNoneAreNotDisturbed) {
  const auto job = Start({"--standalone", "--nproc-per-node=2", "--no-python", "sh", "-c",
                          "sleep 0.5; echo worked"});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(job->Count("^worked$"), 2) << job->Output();
  EXPECT_EQ(job->Count("no-store"), 1) << job->Output();
}

}  // namespace
}  // namespace keel
