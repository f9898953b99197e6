// Record files: what is written is read, wherever; what is damaged is refused in words.
#include "trainer/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::HasSubstr;

const std::vector<RecordField> kFields = {{"image", Dtype::kU8, {1, 2, 2}},
                                          {"label", Dtype::kU16, {}}};

class RecordFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto writer = RecordFileWriter::Open(files_, path_, kFields);
    ASSERT_OK(writer);
    for (const std::string_view record : {"abcd12", "efgh34", "ijkl56"}) {
      ASSERT_OK((*writer)->Append(BytesOf(record)));
    }
    ASSERT_OK((*writer)->Finish());
    const auto whole = ReadWhole(files_, path_, 1 << 20);
    ASSERT_OK(whole);
    whole_ = *whole;
  }

  const TempDir dir_;
  PosixFiles files_;
  const std::string path_ = dir_.File("records");
  std::string whole_;
};

TEST_F(RecordFiles, GiveBackEveryFieldOfEveryRecord) {
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path_));
  EXPECT_EQ(file->header().fields, kFields);
  EXPECT_EQ(file->size(), 3u);
  EXPECT_EQ(file->header().FieldNamed("label"), 1u);
  EXPECT_EQ(file->header().FieldNamed("mask"), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto image, file->Field(1, 0));
  ASSERT_OK_AND_ASSIGN(const auto label, file->Field(2, 1));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.data()), image.size()), "efgh");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(label.data()), label.size()), "56");
  EXPECT_OK(file->Verify());
}

TEST_F(RecordFiles, RefuseARecordThatTheyLack) {
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(path_));
  const auto beyond = file->Field(3, 0);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().message, path_ + ": record 3 of 3");
}

TEST_F(RecordFiles, CutAtAnyByteDoNotOpen) {
  size_t visits = 0;
  for (size_t size = 0; size < whole_.size(); ++size, ++visits) {
    EXPECT_FALSE(ParseRecordHeader(BytesOf(whole_).first(size), size).ok()) << size;
  }
  EXPECT_EQ(visits, whole_.size());
  EXPECT_OK(ParseRecordHeader(BytesOf(whole_), whole_.size()));
}

TEST_F(RecordFiles, AFlippedByteIsFoundWhereverItLies) {
  const size_t header = EncodeRecordHeader({.fields = kFields}).size();
  for (size_t at = 0; at < whole_.size(); ++at) {
    if (at >= header && at < DataOffset(header)) continue;   // padding, which nobody reads
    std::string bad = whole_;
    bad[at] ^= 16;
    const std::string bad_path = dir_.File("flipped" + std::to_string(at));
    ASSERT_OK(WriteDurably(files_, bad_path, bad));
    const auto file = RecordFile::Open(bad_path);
    EXPECT_FALSE(file.ok() && (*file)->Verify().ok()) << at;
  }
}

TEST_F(RecordFiles, RefuseARecordOfAnotherLength) {
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       RecordFileWriter::Open(files_, dir_.File("other"), kFields));
  const Status refused = writer->Append(BytesOf("short"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "record 0 has 5 bytes, not 6");
}

TEST(RecordFields, ThatMakeNoSenseAreRefusedByName) {
  const auto why = [](const std::vector<RecordField>& fields) {
    const Status status = CheckRecordFields(fields);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(why({}), HasSubstr("1 to 64 fields, not 0"));
  EXPECT_THAT(why({{"a", Dtype::kU8, {}}, {"a", Dtype::kF32, {}}}), HasSubstr("the name 'a'"));
  EXPECT_THAT(why({{"", Dtype::kU8, {}}}), HasSubstr("1 to 255 bytes"));
  EXPECT_THAT(why({{"x", Dtype::kU8, {4, 0}}}), HasSubstr("'x' has a dimension of 0"));
  EXPECT_THAT(why({{"x", Dtype::kU8, {int64_t{1} << 40, 2}}}), HasSubstr("dimension of 2"));
}

}  // namespace
}  // namespace keel
