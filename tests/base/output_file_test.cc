// A file that is written for somebody: links, leftovers, and what stands in its way.
#include "base/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_helpers.h"
#include "base/memory_objects.h"
#include "base/object_files.h"
#include "base/posix_files.h"
#include "base/upload_age.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  Status Write(const std::string& path, const std::string& content, bool replace = false) {
    KEEL_TRY_ASSIGN(const auto output, OutputFile::Open(files_, {path, NewOutputId(), replace}));
    KEEL_TRY(output->file().WriteAt(0, BytesOf(content)));
    return output->Commit();
  }
  std::string Names() {
    std::string names;
    const auto entries = files_.List(dir_.path());
    for (const DirEntry& entry : *entries) names += entry.name + " ";
    return names;
  }

  PosixFiles files_;
  TempDir dir_;
};

TEST_F(OutputFileTest, HasItsNameOnlyWhenItIsCommitted) {
  const std::string path = dir_.File("out");
  {
    const auto output = OutputFile::Open(files_, {path, NewOutputId()});
    ASSERT_OK(output);
    ASSERT_OK((*output)->file().WriteAt(0, BytesOf("half")));
    EXPECT_FALSE(*Exists(files_, path));
  }
  EXPECT_EQ(Names(), "");
  ASSERT_OK(Write(path, "whole"));
  EXPECT_EQ(*ReadWhole(files_, path, 100), "whole");
  EXPECT_EQ(Write(path, "again").error().code, Code::kExists);
  ASSERT_OK(Write(path, "again", true));
  EXPECT_EQ(*ReadWhole(files_, path, 100), "again");
  EXPECT_EQ(Names(), "out ");
}

TEST_F(OutputFileTest, FollowsLinksToTheirEndAndKeepsThem) {
  ASSERT_OK(files_.MakeDir(dir_.File("below")));
  ASSERT_EQ(::symlink("below/middle", dir_.File("link").c_str()), 0);
  ASSERT_EQ(::symlink("end", dir_.File("below/middle").c_str()), 0);
  EXPECT_EQ(*files_.Resolve(dir_.File("link")), dir_.File("below/end"));
  ASSERT_OK(Write(dir_.File("link"), "content"));
  EXPECT_EQ(*ReadWhole(files_, dir_.File("below/end"), 100), "content");
  EXPECT_EQ(*files_.Resolve(dir_.File("link")), dir_.File("below/end")) << "the link was replaced";
  EXPECT_EQ(Write(dir_.File("link"), "more").error().code, Code::kExists);
  ASSERT_EQ(::symlink("self", dir_.File("self").c_str()), 0);
  EXPECT_FALSE(Write(dir_.File("self"), "").ok());
}

TEST_F(OutputFileTest, RefusesWhatIsNoPlaceForAFile) {
  ASSERT_EQ(::mkfifo(dir_.File("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/proc/self/fd/1", dir_.File("stdout").c_str()), 0);
  for (const std::string& path : {dir_.path(), dir_.File("pipe"), dir_.File("stdout"),
                                  std::string("/dev/null")}) {
    const Status written = Write(path, "content", true);
    ASSERT_FALSE(written.ok()) << path;
    EXPECT_EQ(written.error().code, Code::kInvalid) << written.error().message;
    EXPECT_NE(written.error().message.find(path), std::string::npos) << written.error().message;
  }
  EXPECT_EQ(Names(), "pipe stdout ");
}

TEST_F(OutputFileTest, LeftoversGoUnlessAWriterHoldsThem) {
  const std::string path = dir_.File("out");
  const auto live = OutputFile::Open(files_, {path, NewOutputId()});
  ASSERT_OK(live);
  const std::string others[] = {"out.0123456789abcdef.tmp", "out.tmp", "out.0123456789ABCDEF.tmp",
                                "out.0123.tmp", "another.0123456789abcdef.tmp"};
  for (const std::string& name : others) ASSERT_OK(WriteDurably(files_, dir_.File(name), "x"));
  RemoveOutputLeftovers(files_, path);
  EXPECT_FALSE(*Exists(files_, dir_.File(others[0])));
  for (size_t i = 1; i < std::size(others); ++i) {
    EXPECT_TRUE(*Exists(files_, dir_.File(others[i]))) << others[i];
  }
  ASSERT_OK((*live)->Commit());
  EXPECT_TRUE(*Exists(files_, path));
}

TEST(OutputFileInABucket, LeftoversGoUnlessAWriterGoesOn) {
  MemoryObjects bucket;
  ObjectFiles files(bucket);
  const char* const path = "s3://bucket/out.safetensors";
  std::vector<std::unique_ptr<ObjectUpload>> uploads;
  for (const char* key : {"out.safetensors", "out.safetensors", "out.safetensors2"}) {
    ASSERT_OK_AND_ASSIGN(auto upload, bucket.Upload(key, 10));
    uploads.push_back(std::move(upload));
  }
  bucket.Pass(kBucketQuiet);
  ASSERT_OK(uploads[1]->Append(BytesOf("x")));
  RemoveOutputLeftovers(files, path);
  EXPECT_FALSE(uploads[0]->Finish().ok());
  EXPECT_OK(uploads[1]->Finish());
  EXPECT_OK(uploads[2]->Finish());
}

}  // namespace
}  // namespace keel
