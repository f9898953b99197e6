// keel ended by a signal while it writes to a bucket whose store does not answer: it ends at once,
// and no upload is left there, which nobody would see and somebody would pay for.
#include <gtest/gtest.h>

#include <csignal>

#include "base/posix_files.h"
#include "elastic/process/spawn.h"
#include "store/s3/s3_objects.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/s3/stub.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/run_keel.h"

namespace keel {
namespace {

using Fault = StubFault::Kind;

constexpr Duration kHangLimit = std::chrono::seconds(100);

struct Stopped {
  std::string name;
  std::vector<std::string> words;   // "%": the folder
  int signal = 0;

  friend std::ostream& operator<<(std::ostream& out, const Stopped& the) { return out << the.name; }
};

class StoppedUpload : public testing::TestWithParam<Stopped> {
 protected:
  // Of several parts, also where it is compressed.
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    PosixFiles files;
    const TestState state = TestState::Make(1, 6'000'000);
    for (const char* name : {"run", "torn"}) {
      MemorySource source(state.Spans());
      ASSERT_OK(SaveCheckpoint(files, PlanOf(state, folder_->File(name), 5, 1, 1 << 19), source,
                               {.compress_threads = 2}, 0));
    }
    ASSERT_OK(files.Remove(folder_->File("torn/step-000000005/manifest.json")));
    const Ran ran =
        RunKeel("export " + folder_->File("run") + " " + folder_->File("in.safetensors"));
    ASSERT_EQ(ran.exit_code, 0) << ran.out;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  // Starts the command, sends it the signal once so many parts have come, and waits for its end.
  void StopAtPart(int part) {
    ChildSpec spec;
    spec.argv = {KEEL_BIN_DIR "/keel"};
    spec.environment = OwnEnvironment();
    for (std::string word : GetParam().words) {
      if (word.starts_with("%")) word.replace(0, 1, folder_->path());
      spec.argv.push_back(word);
    }
    for (const auto& [name, value] : stub_.environment()) spec.environment[name] = value;
    const std::string said = folder_->File(GetParam().name);
    spec.out = spec.err = Stream::File(said);
    ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec));
    ASSERT_TRUE(stub_.Await("UploadPart", part)) << ReadFile(said);
    ASSERT_OK(child.Signal(GetParam().signal));
    ASSERT_OK_AND_ASSIGN(const ExitStatus end,
                         child.Wait(RealClock().Monotonic() + kHangLimit));
    EXPECT_TRUE(end.KilledBy(GetParam().signal)) << end.Text() << "\n" << ReadFile(said);
  }

  void ExpectNothingLeft() {
    EXPECT_TRUE(stub_.objects().empty());
    ASSERT_OK_AND_ASSIGN(const auto objects,
                         S3Objects::Open("bucket", stub_.environment(), files_));
    ASSERT_OK_AND_ASSIGN(const auto unfinished, objects->Unfinished(""));
    EXPECT_TRUE(unfinished.empty()) << unfinished.front().key;
  }

  static std::unique_ptr<TempDir> folder_;
  PosixFiles files_;
  S3Stub stub_;
};
std::unique_ptr<TempDir> StoppedUpload::folder_;

TEST_P(StoppedUpload, LeavesNothing) {
  // The first part tries whether the store compares checksums.
  stub_.Fail({"UploadPart", Fault::kAnswer, 1, {400, {}, StubErrorBody("BadDigest")}});
  stub_.Fail({"UploadPart", Fault::kBlackHole, 1000});
  StopAtPart(2);
  EXPECT_EQ(stub_.Count("CreateUpload"), 2);
  ExpectNothingLeft();
}

TEST_P(StoppedUpload, LeavesNothingOfTheTryOfChecksums) {
  stub_.Fail({"UploadPart", Fault::kBlackHole, 1000});
  StopAtPart(1);
  EXPECT_EQ(stub_.Count("CreateUpload"), 1);
  ExpectNothingLeft();
}

INSTANTIATE_TEST_SUITE_P(
    Commands, StoppedUpload,
    testing::Values(
        Stopped{"export", {"export", "%/run", "s3://bucket/out.safetensors"}, SIGINT},
        Stopped{"cp", {"cp", "%/run", "s3://bucket/run"}, SIGTERM},
        Stopped{"import", {"import", "%/in.safetensors", "s3://bucket/run"}, SIGHUP},
        Stopped{"repair", {"repair", "%/torn", "s3://bucket/run", "--step", "5"}, SIGINT}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace keel
