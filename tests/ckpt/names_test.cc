// Names on disk read back as what they were made from, and nothing else is taken for one.
#include "ckpt/names.h"

#include <gtest/gtest.h>

#include "ckpt/glob.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using Kind = StepFile::Kind;

TEST(Names, StepDirectoriesReadBack) {
  EXPECT_EQ(StepDirName(1200), "step-000001200");
  EXPECT_EQ(ParseStepDirName("step-000001200"), 1200u);
  EXPECT_EQ(ParseStepDirName(StepDirName(12345678901)), 12345678901u);
  for (const char* other : {"step-1200", "step-0000012000", "step-", "step-00000120x", "epoch-1",
                            "step-000001200.bak", "step-99999999999999999999"}) {
    EXPECT_EQ(ParseStepDirName(other), std::nullopt) << other;
  }
}

TEST(Names, LaterLocksOfJobsReadBack) {
  EXPECT_EQ(LaterJobLockName(12), "job-12.lock");
  EXPECT_TRUE(IsLaterJobLockName(LaterJobLockName(12)));
  for (const char* other : {"job.lock", "job-.lock", "job-012.lock", "job-x.lock", "job-1.lock~"}) {
    EXPECT_FALSE(IsLaterJobLockName(other)) << other;
  }
}

TEST(Names, MarksOfJobsReadBack) {
  EXPECT_TRUE(IsJobMarkName(JobMarkName("0123456789abcdef")));
  for (const char* other : {"job.lock", "job-.mark", "job-0123456789abcde.mark",
                            "job-0123456789abcdeg.mark", "job-0123456789abcdef.mark~"}) {
    EXPECT_FALSE(IsJobMarkName(other)) << other;
  }
}

TEST(Names, FilesOfAStepReadBack) {
  const ShardName shard{"0123456789abcdef", 2, 13};
  EXPECT_EQ(ShardFileName(shard), "0123456789abcdef-shard-0002-of-0013.keel");
  EXPECT_EQ(ParseStepFile(ShardFileName(shard)).kind, Kind::kShard);
  EXPECT_EQ(ParseStepFile(ShardFileName(shard)).shard, shard);
  for (uint32_t lock = 0; lock < kShardLocks; ++lock) {
    EXPECT_EQ(ParseStepFile(ShardLockName(shard, lock)).kind, Kind::kShardLock);
  }
  EXPECT_EQ(ParseStepFile(ManifestTempName(shard.attempt)).kind, Kind::kManifestTemp);
  EXPECT_EQ(ParseStepFile(kManifestName).kind, Kind::kManifest);
  EXPECT_EQ(ParseStepFile(kPinName).kind, Kind::kPin);
  EXPECT_EQ(ParseStepFile("pinned.tmp").kind, Kind::kPinTemp);
  EXPECT_EQ(ParseStepFile(kCommitLockName).kind, Kind::kCommitLock);
}

TEST(Names, WhatIsNotOursIsForeign) {
  for (const char* other : {"", "notes.txt", "manifest.json.bak", "shard-0000-of-0001.keel",
                            "0123456789abcdef-shard-0001-of-0001.keel",
                            "0123456789ABCDEF-shard-0000-of-0001.keel",
                            "0123456789abcdef-shard-0000-of-0001.keep",
                            "0123456789abcdef-shard-0000-of-00012keel",
                            "0123456789abcdef-shard-000a-of-0001.keel"}) {
    EXPECT_EQ(ParseStepFile(other).kind, Kind::kForeign) << other;
  }
}

TEST(Names, AttemptsAreChecked) {
  Random random(1);
  EXPECT_OK(CheckAttempt(NewAttempt(random)));
  for (const char* other : {"", "0123456789abcde", "0123456789abcdeg", "../456789abcdef0"}) {
    EXPECT_FALSE(CheckAttempt(other).ok()) << other;
  }
}

TEST(Glob, MatchesWholeNames) {
  EXPECT_TRUE(GlobMatches("model.*", "model.weight"));
  EXPECT_TRUE(GlobMatches("*.weight", "a.b.weight"));
  EXPECT_TRUE(GlobMatches("a?c*", "abc"));
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("*a*b*", "xxaxxaxxb"));
  EXPECT_FALSE(GlobMatches("model", "model.weight"));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_FALSE(GlobMatches("*ab", "abc"));
}

TEST(Names, TheStepOfADirectoryThatWasPutAsideReadsBack) {
  EXPECT_EQ(StepOfDirName(StepDirName(40)), 40u);
  EXPECT_EQ(StepOfDirName(DamagedStepDirName(40, "0123456789abcdef")), 40u);
  for (const char* other : {"", "run", "step-40", "step-000000040.bak", "x.damaged-0123456789abcde",
                            "step-40.damaged-0123456789abcdef"}) {
    EXPECT_EQ(StepOfDirName(other), std::nullopt) << other;
  }
}

TEST(Glob, AQuestionMarkIsOneCharacterOfUtf8) {
  EXPECT_TRUE(GlobMatches("G?del", "G\xc3\xb6" "del"));
  EXPECT_TRUE(GlobMatches("?\xe2\x82\xac?", "a\xe2\x82\xac\xf0\x9f\xa7\xae"));
  EXPECT_TRUE(GlobMatches("*?", "\xe2\x82\xac"));
  EXPECT_FALSE(GlobMatches("G??del", "G\xc3\xb6" "del"));
  EXPECT_FALSE(GlobMatches("*??", "\xe2\x82\xac")) << "a part of a character is none";
}

}  // namespace
}  // namespace keel
