// A bucket in memory, and a bucket as files that can be read.
#include "base/object_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_objects.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Text(Objects& bucket, const std::string& key) {
  std::string text(100, '?');
  const auto bytes = bucket.Get(key, 0, std::as_writable_bytes(std::span(text)));
  if (!bytes.ok()) return bytes.error().message;
  text.resize(*bytes);
  return text;
}

TEST(MemoryObjects, AnUploadIsSeenWhenItIsFinished) {
  MemoryObjects bucket;
  ASSERT_OK_AND_ASSIGN(const auto upload, bucket.Upload("run/a", 10));
  EXPECT_OK(upload->Append(BytesOf("12")));
  EXPECT_EQ(bucket.Look("run/a").error().code, Code::kNotFound);
  ASSERT_OK_AND_ASSIGN(const auto unfinished, bucket.Unfinished("run/"));
  ASSERT_EQ(unfinished.size(), 1u);
  EXPECT_EQ(unfinished[0].key, "run/a");
  EXPECT_OK(upload->Append(BytesOf("345")));
  EXPECT_OK(upload->Finish());
  EXPECT_EQ(Text(bucket, "run/a"), "12345");
  EXPECT_TRUE(bucket.Unfinished("")->empty());
}

TEST(MemoryObjects, AnUploadThatIsGivenUpOrDiscardedMakesNothing) {
  MemoryObjects bucket;
  { ASSERT_OK_AND_ASSIGN(const auto upload, bucket.Upload("a", 10)); }
  EXPECT_TRUE(bucket.Unfinished("")->empty());
  ASSERT_OK_AND_ASSIGN(const auto upload, bucket.Upload("a", 10));
  EXPECT_OK(bucket.Discard(bucket.Unfinished("")->front()));
  EXPECT_EQ(upload->Finish().error().code, Code::kNotFound);
  EXPECT_EQ(bucket.Look("a").error().code, Code::kNotFound);
}

TEST(MemoryObjects, PutsOnceAndReplacesAlways) {
  MemoryObjects bucket;
  EXPECT_OK(bucket.PutIfAbsent("a", "first"));
  EXPECT_OK(bucket.PutIfAbsent("a", "first")) << "as after an answer that was lost";
  EXPECT_EQ(bucket.PutIfAbsent("a", "second").error().code, Code::kExists);
  EXPECT_EQ(Text(bucket, "a"), "first");
  EXPECT_OK(bucket.Replace("a", "third"));
  EXPECT_EQ(Text(bucket, "a"), "third");
  EXPECT_OK(bucket.Remove({"a", "never there"}));
  EXPECT_OK(bucket.PutIfAbsent("a", "second"));
}

class ObjectFilesTest : public testing::Test {
 protected:
  ObjectFilesTest() {
    for (const char* key : {"run/step-1/manifest.json", "run/step-1/shard", "run/step-2/shard",
                            "run/notes", "run/", "running", "top"}) {
      EXPECT_OK(bucket_.Replace(key, std::string("bytes of ") + key));
    }
  }

  std::string Requests() {
    std::string all;
    for (const std::string& one : bucket_.requests()) {
      if (!one.starts_with("replace")) all += one + "; ";
    }
    return all;
  }

  MemoryObjects bucket_;
  ObjectFiles files_{bucket_};
};

TEST_F(ObjectFilesTest, DirectoriesAreWhatKeysHaveBeforeASlash) {
  for (const char* path : {"s3://bucket/run", "s3://bucket/run/", "s3://bucket//run//"}) {
    ASSERT_OK_AND_ASSIGN(const auto entries, files_.List(path));
    EXPECT_THAT(entries, ElementsAre(DirEntry{"notes", FileKind::kFile},
                                     DirEntry{"step-1", FileKind::kDirectory},
                                     DirEntry{"step-2", FileKind::kDirectory}));
  }
  ASSERT_OK_AND_ASSIGN(const auto top, files_.List("s3://bucket"));
  EXPECT_THAT(top, ElementsAre(DirEntry{"run", FileKind::kDirectory},
                               DirEntry{"running", FileKind::kFile},
                               DirEntry{"top", FileKind::kFile}));
  EXPECT_EQ(files_.List("s3://bucket/nothing").error().code, Code::kNotFound);
  EXPECT_EQ(files_.List("s3://bucket/ru").error().code, Code::kNotFound);
}

TEST_F(ObjectFilesTest, TellsKindAndSize) {
  EXPECT_EQ(files_.Stat("s3://bucket/run/notes")->bytes, 18u);
  EXPECT_EQ(files_.Stat("s3://bucket/run/notes")->kind, FileKind::kFile);
  for (const char* path : {"s3://bucket", "s3://bucket/", "s3://bucket/run/step-1"}) {
    EXPECT_EQ(files_.Stat(path)->kind, FileKind::kDirectory) << path;
  }
  EXPECT_EQ(files_.Stat("s3://bucket/runn").error().code, Code::kNotFound);
  EXPECT_TRUE(*Exists(files_, "s3://bucket/run/step-2"));
  EXPECT_FALSE(*Exists(files_, "s3://bucket/run/step-3"));
}

TEST_F(ObjectFilesTest, WhatWasListedIsNotAskedForAgainButOnce) {
  ASSERT_OK(files_.List("s3://bucket/run/step-1"));
  EXPECT_EQ(files_.Stat("s3://bucket/run/step-1/shard")->bytes, 25u);
  EXPECT_EQ(Requests(), "list run/step-1/; ");
  EXPECT_OK(bucket_.Remove({"run/step-1/shard"}));
  EXPECT_EQ(files_.Stat("s3://bucket/run/step-1/shard").error().code, Code::kNotFound);
  ASSERT_OK(files_.List("s3://bucket/run/step-1"));
  EXPECT_OK(bucket_.Remove({"run/step-1/manifest.json"}));
  EXPECT_EQ(files_.List("s3://bucket/run/step-1").error().code, Code::kNotFound);
  EXPECT_EQ(files_.Stat("s3://bucket/run/step-1/manifest.json").error().code, Code::kNotFound)
      << "a list that is newer counts";
}

TEST_F(ObjectFilesTest, FilesAreReadAnywhere) {
  ASSERT_OK_AND_ASSIGN(const auto file, files_.Open("s3://bucket/run/notes", {}));
  EXPECT_EQ(*file->Size(), 18u);
  EXPECT_FALSE(file->direct());
  std::string part(6, '?');
  EXPECT_EQ(*file->ReadAt(9, std::as_writable_bytes(std::span(part))), 6u);
  EXPECT_EQ(part, "run/no");
  EXPECT_EQ(*file->ReadAt(15, std::as_writable_bytes(std::span(part))), 3u);
  EXPECT_EQ(*file->ReadAt(18, std::as_writable_bytes(std::span(part))), 0u);
  EXPECT_EQ(*file->ReadAt(99, std::as_writable_bytes(std::span(part))), 0u);
  EXPECT_EQ(*ReadWhole(files_, "s3://bucket/top", 100), "bytes of top");
  EXPECT_EQ(files_.Open("s3://bucket/run", {}).error().code, Code::kNotFound);
}

TEST_F(ObjectFilesTest, WhatABucketCannotDoIsRefusedAndTheErrorSaysWhatToDo) {
  const std::string path = "s3://bucket/run/notes";
  for (const Status& status :
       {files_.Rename(path, path + "2"), Status(files_.Open(path, {.write = true}).error()),
        Status(files_.Lock(path, "me").error()), Status(files_.FreeBytes(path).error())}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInvalid);
    EXPECT_THAT(status.error().message, HasSubstr("s3://bucket/run"));
    EXPECT_THAT(status.error().message, HasSubstr("name one on a disk"));
  }
  EXPECT_FALSE(*files_.IsLocked(path));
  ASSERT_OK_AND_ASSIGN(const auto file, files_.Open(path, {}));
  EXPECT_EQ(file->WriteAt(0, BytesOf("x")).error().code, Code::kInvalid);
  EXPECT_EQ(Text(bucket_, "run/notes"), "bytes of run/notes");
}

TEST_F(ObjectFilesTest, ItSaysWhereItIs) {
  ASSERT_OK_AND_ASSIGN(const BucketPlace place, files_.Bucket("s3://bucket/run/a/"));
  EXPECT_EQ(place.bucket, &bucket_);
  EXPECT_EQ(place.key, "run/a");
  EXPECT_EQ(files_.Bucket("s3://bucket")->key, "");
  PosixFiles disk;
  EXPECT_EQ(disk.Bucket("/tmp")->bucket, nullptr);
}

TEST_F(ObjectFilesTest, SmallFilesAreReplacedWholeAndRemoved) {
  const std::string path = "s3://bucket/run/notes";
  EXPECT_OK(MakeDirs(files_, "s3://bucket/new/place"));
  EXPECT_OK(WriteDurably(files_, path, "other"));
  EXPECT_EQ(Text(bucket_, "run/notes"), "other");
  EXPECT_OK(files_.Remove(path));
  EXPECT_EQ(files_.Stat(path).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace keel
