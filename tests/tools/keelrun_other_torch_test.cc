// Programs that find another LibTorch than they were built for: a sentence, before all else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/launched.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSentence = "^.*: this was built for LibTorch 2[.][0-9.]+, but .* is 2.99.7, "
                                  "whose classes differ. Give it a LibTorch 2[.][0-9]+ ";

class OtherTorch : public ::testing::Test {
 protected:
  std::unique_ptr<Launched> Start(std::vector<std::string> command) {
    return std::make_unique<Launched>(folder_, "job", Launched::Command{std::move(command)},
                                      Environment{{"LD_PRELOAD", KEEL_OTHER_TORCH}});
  }

  TempDir folder_;
};

TEST_F(OtherTorch, ATrainingProgramRefusesToBegin) {
  const auto program = Start({KEEL_BIN_DIR "/model_train", "--steps=3"});
  EXPECT_EQ(program->ExitCode(), 1) << program->Output();
  EXPECT_EQ(program->Count(kSentence), 1) << program->Output();
  EXPECT_EQ(program->Count("final step="), 0) << program->Output();
}

TEST_F(OtherTorch, ALauncherHasNoStoreAndSaysWhy) {
  const auto job = Start({KEEL_BIN_DIR "/keelrun", "--standalone", "--no-python", "bash", "-c",
                          "unset LD_PRELOAD; until exec 5<>/dev/tcp/127.0.0.1/$MASTER_PORT; do "
                          "sleep 0.1; done 2>/dev/null; exec sleep 1000"});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("libkeel_store_module.so cannot be used: this was built "));
  EXPECT_EQ(job->Count("^job .*no store can be used on this host.* is 2.99.7"), 1)
      << job->Output();
}

}  // namespace
}  // namespace keel
