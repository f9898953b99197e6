// keel in a bucket of a real server: what it says of a directory, it says of a copy of it there.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>

#include "base/object_files.h"
#include "ckpt/names.h"
#include "tests/ckpt/into_bucket.h"
#include "tests/store/s3/weed.h"
#include "tests/support/file_text.h"
#include "tests/tools/keel_program.h"

namespace keel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One server for all tests of the program.
class KeelInABucket : public KeelProgram {
 protected:
  static void SetUpTestSuite() {
    if (!WhyNoWeed().empty()) return;
    server_ = std::make_unique<WeedServer>();
    for (const auto& [name, value] : server_->environment()) setenv(name.c_str(), value.c_str(), 1);
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    const std::string why = WhyNoWeed();
    if (!why.empty()) GTEST_SKIP() << "there is no SeaweedFS: " << why;
    SaveStep(state_, 10);
    SaveStep(TestState::Make(2, 4000), 20);
    bucket_ = server_->Open("checkpoints");
    prefix_ = testing::UnitTest::GetInstance()->current_test_info()->name();
    CopyIntoBucket(files_, root(), *bucket_, prefix_);
  }

  std::string url() const { return "s3://checkpoints/" + prefix_; }

  // The command, where ROOT stands for the directory or for its copy.
  static Ran Run(std::string arguments, const std::string& there) {
    for (size_t at; (at = arguments.find("ROOT")) != std::string::npos;) {
      arguments.replace(at, 4, there);
    }
    return RunKeel(arguments);
  }
  Ran RunHere(const std::string& arguments) { return Run(arguments, root()); }
  // What it prints of the bucket, as if it were the directory.
  Ran RunThere(const std::string& arguments) {
    Ran ran = Run(arguments, url());
    for (size_t at; (at = ran.out.find(url())) != std::string::npos;) {
      ran.out.replace(at, url().size(), root());
    }
    return ran;
  }

  static std::unique_ptr<WeedServer> server_;
  std::unique_ptr<S3Objects> bucket_;
  std::string prefix_;
};
std::unique_ptr<WeedServer> KeelInABucket::server_;

TEST_F(KeelInABucket, EachCommandThatReadsSaysTheSame) {
  for (const char* command :
       {"ls ROOT", "ls ROOT --json", "ls ROOT@10", "inspect ROOT", "inspect ROOT@latest --json",
        "inspect ROOT/step-000000010", "verify ROOT", "verify ROOT@10 --json",
        "cat ROOT model.bias", "cat ROOT@10 step --json", "diff ROOT@10 ROOT@20",
        "ls ROOT@30"}) {
    const Ran here = RunHere(command), there = RunThere(command);
    EXPECT_EQ(there.exit_code, here.exit_code) << command << "\n" << there.out;
    EXPECT_EQ(there.out, here.out) << command;
  }
  EXPECT_EQ(RunThere("verify ROOT").exit_code, 0);
  const Ran nothing = RunKeel("verify " + url() + "/nothing");
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_THAT(nothing.out, HasSubstr(url() + "/nothing is not there"));
}

// A second reader, of another language and with another client (boto3).
TEST_F(KeelInABucket, PythonReadsItTooAndSaysTheSame) {
  // An empty AWS_CA_BUNDLE, which is none for others, is an error for boto3.
  const std::string reader =
      "env -u AWS_CA_BUNDLE " KEEL_TEST_PYTHON " -B " KEEL_SOURCE_DIR
      "/tools/python/evenkeel_ckpt.py ";
  if (RunShell(KEEL_TEST_PYTHON " -c 'import boto3, numpy, zstandard'").exit_code != 0) {
    GTEST_SKIP() << "boto3 is missing: tools/setup.sh --tests installs it";
  }
  for (const char* which : {"", "@10", "@latest", "/step-000000020"}) {
    const Ran here = RunShell(reader + root() + which + " --verify");
    Ran there = RunShell(reader + url() + which + " --verify");
    for (size_t at; (at = there.out.find(url())) != std::string::npos;) {
      there.out.replace(at, url().size(), root());
    }
    EXPECT_EQ(here.exit_code, 0) << here.out;
    EXPECT_EQ(there.exit_code, 0) << there.out;
    EXPECT_EQ(there.out, here.out) << which;
  }
  EXPECT_THAT(RunShell(reader + url() + "@30").out, HasSubstr("there is no step 30"));
  EXPECT_THAT(RunShell(reader + url() + "/nothing").out, HasSubstr("holds no complete checkpoint"));
  // One flipped bit, seen by both.
  const std::string step = "/step-000000020";
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(root() + step));
  const auto shard = std::find_if(entries.begin(), entries.end(), [](const DirEntry& entry) {
    return entry.name.ends_with(".keel");
  });
  ASSERT_NE(shard, entries.end());
  std::string bytes = ReadFile(root() + step + "/" + shard->name);
  bytes[bytes.size() / 3] ^= 4;
  ASSERT_OK(bucket_->Replace(prefix_ + step + "/" + shard->name, bytes));
  const Ran hit = RunShell(reader + url() + "@20 --verify");
  EXPECT_EQ(hit.exit_code, 1) << hit.out;
  EXPECT_NE(RunKeel("verify " + url() + "@20").exit_code, 0);
}

TEST_F(KeelInABucket, AnExportFromThereHasTheSameBytes) {
  ASSERT_EQ(RunHere("export ROOT@20 " + dir_.File("here")).exit_code, 0);
  const Ran there = RunThere("export ROOT@20 " + dir_.File("there"));
  ASSERT_EQ(there.exit_code, 0) << there.out;
  EXPECT_EQ(*ReadWhole(files_, dir_.File("here"), 1 << 24),
            *ReadWhole(files_, dir_.File("there"), 1 << 24));
  const Ran same = RunKeel("diff " + root() + " " + url());
  EXPECT_EQ(same.exit_code, 0) << same.out;
}

TEST_F(KeelInABucket, ASafetensorsFileMayBeThereToo) {
  const std::string here = dir_.File("here.safetensors"), there = url() + "-out/m.safetensors";
  ASSERT_EQ(RunHere("export ROOT@20 " + here).exit_code, 0);
  const Ran made = RunHere("export ROOT@20 " + there);
  ASSERT_EQ(made.exit_code, 0) << made.out;
  ObjectFiles objects(*bucket_);
  EXPECT_EQ(*ReadWhole(objects, there, 1 << 24), *ReadWhole(files_, here, 1 << 24));
  const Ran again = RunHere("cp ROOT@10 " + there);
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.out, HasSubstr(there + " is there already; keel export --force replaces it"));
  EXPECT_EQ(RunHere("export ROOT@20 " + there + " --force").exit_code, 0);
  // And back, by the command that copies all else.
  const Ran back = RunKeel("cp " + there + " " + dir_.File("back"));
  ASSERT_EQ(back.exit_code, 0) << back.out;
  EXPECT_EQ(RunKeel("diff " + root() + "@20 " + dir_.File("back")).exit_code, 0);
  EXPECT_THAT(RunKeel("cp --all " + there + " " + dir_.File("back")).out,
              HasSubstr("leave --all out"));
  ASSERT_OK_AND_ASSIGN(const auto listing,
                       bucket_->List(prefix_ + "-out/", Objects::Depth::kAll));
  EXPECT_EQ(listing.objects.size(), 1u);
}

TEST_F(KeelInABucket, DamageIsFoundAndNamed) {
  const std::string shard = ShardOf(root() + "/step-000000020");
  std::string bytes = *ReadWhole(files_, shard, 1 << 24);
  bytes[bytes.size() / 2] ^= 1;
  const std::string name = shard.substr(root().size());
  ASSERT_OK(bucket_->Replace(prefix_ + name, bytes));
  const Ran verified = RunKeel("verify " + url());
  EXPECT_EQ(verified.exit_code, 1) << verified.out;
  EXPECT_THAT(verified.out, HasSubstr(name));
  ASSERT_OK(bucket_->Remove({prefix_ + name}));
  const Ran listed = RunKeel("ls " + url());
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, AllOf(HasSubstr("damaged"), HasSubstr("complete")));
}

// Ids and times of a new checkpoint are its own.
TEST_F(KeelInABucket, EachCommandThatKeepsHouseSaysTheSame) {
  for (const char* command :
       {"pin ROOT@10", "ls ROOT", "gc ROOT --keep 1 --dry-run", "gc ROOT --keep 1 --json",
        "unpin ROOT@10", "unpin ROOT@10", "gc ROOT --keep 1", "ls ROOT", "gc ROOT@20"}) {
    const Ran here = RunHere(command), there = RunThere(command);
    EXPECT_EQ(there.exit_code, here.exit_code) << command << "\n" << there.out;
    EXPECT_EQ(there.out, here.out) << command;
  }
  EXPECT_EQ(bucket_->List(prefix_ + "/", Objects::Depth::kAll)->objects.size(), 2u);
}

TEST_F(KeelInABucket, CopiesGoBothWaysAndAreTheSame) {
  const std::string there = url() + "-copy", back = dir_.File("back");
  const Ran up = RunKeel("cp " + root() + " " + there + " --all");
  ASSERT_EQ(up.exit_code, 0) << up.out;
  const Ran down = RunKeel("cp " + there + "@20 " + back);
  ASSERT_EQ(down.exit_code, 0) << down.out;
  EXPECT_EQ(RunKeel("verify " + there).exit_code, 0);
  const std::string shard = ShardOf(root() + "/step-000000020");
  EXPECT_EQ(*ReadWhole(files_, back + shard.substr(root().size()), 1 << 24),
            *ReadWhole(files_, shard, 1 << 24));
  EXPECT_EQ(RunKeel("diff " + root() + " " + back).exit_code, 0);
  const Ran again = RunKeel("cp " + root() + " " + there + " --all --json");
  EXPECT_EQ(again.exit_code, 0) << again.out;
  EXPECT_THAT(again.out, Not(HasSubstr("\"copied\": true")));
}

TEST_F(KeelInABucket, WhatIsDamagedIsNotCopied) {
  const std::string shard = ShardOf(root() + "/step-000000020");
  std::string bytes = *ReadWhole(files_, shard, 1 << 24);
  bytes[bytes.size() / 2] ^= 1;
  const std::string name = shard.substr(root().size());
  ASSERT_OK(bucket_->Replace(prefix_ + name, bytes));
  const Ran copied = RunKeel("cp " + url() + "@20 " + dir_.File("back"));
  EXPECT_EQ(copied.exit_code, 3) << copied.out;
  EXPECT_THAT(copied.out, HasSubstr(name));
  EXPECT_FALSE(files_.Stat(dir_.File("back") + "/step-000000020").ok());
  EXPECT_EQ(RunKeel("cp " + root() + "@20 " + url()).exit_code, 0) << "that very one is there";
}

TEST_F(KeelInABucket, UploadsThatNobodyFinishedAreTold) {
  EXPECT_THAT(RunThere("ls ROOT").out, Not(HasSubstr("not finished")));
  const ShardName shard{std::string(16, 'a'), 0, 1};
  const std::string key = prefix_ + "/step-000000030/" + ShardFileName(shard);
  ASSERT_OK_AND_ASSIGN(const auto upload, bucket_->Upload(key, uint64_t{32} << 20));
  ASSERT_OK(upload->Append(std::vector<std::byte>(uint64_t{20} << 20)));
  EXPECT_THAT(RunThere("ls ROOT@10").out, HasSubstr("1 upload begun and not finished"));
  const Ran listed = RunThere("ls ROOT");
  EXPECT_THAT(listed.out, HasSubstr("1 upload begun and not finished, the oldest 2"));
  EXPECT_THAT(RunThere("ls ROOT --json").out, HasSubstr("\"unfinished_uploads\": ["));
}

TEST_F(KeelInABucket, WhatIsMadeThereIsWhole) {
  ASSERT_EQ(RunHere("export ROOT@20 " + dir_.File("in")).exit_code, 0);
  const Ran made = RunThere("import " + dir_.File("in") + " ROOT --step 99");
  ASSERT_EQ(made.exit_code, 0) << made.out;
  EXPECT_EQ(RunThere("verify ROOT@99").exit_code, 0);
  const Ran again = RunThere("import " + dir_.File("in") + " ROOT --step 99");
  EXPECT_NE(again.exit_code, 0) << again.out;
  EXPECT_THAT(again.out, HasSubstr("is committed already"));
  ASSERT_OK(files_.Remove(root() + "/step-000000010/manifest.json"));
  const Ran mended = RunThere("repair " + root() + " ROOT-mended --step 10");
  ASSERT_EQ(mended.exit_code, 0) << mended.out;
  EXPECT_EQ(RunThere("verify ROOT-mended").exit_code, 0);
}

TEST_F(KeelInABucket, WhatCannotBeReachedIsNamed) {
  const Ran no_bucket = RunKeel("ls s3://no-such-bucket/run");
  EXPECT_EQ(no_bucket.exit_code, 3) << no_bucket.out;
  EXPECT_THAT(no_bucket.out, HasSubstr("s3://no-such-bucket"));
  const Ran wrong_key = RunShell("AWS_SECRET_ACCESS_KEY=wrong " KEEL_BIN_DIR "/keel ls " + url());
  EXPECT_EQ(wrong_key.exit_code, 3) << wrong_key.out;
  EXPECT_THAT(wrong_key.out, AllOf(HasSubstr("s3://checkpoints"), Not(HasSubstr("wrong"))));
  const Ran other_scheme = RunKeel("ls gs://checkpoints/run");
  EXPECT_EQ(other_scheme.exit_code, 3) << other_scheme.out;
}

}  // namespace
}  // namespace keel
