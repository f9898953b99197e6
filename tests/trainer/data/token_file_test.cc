// Token files: what is written is read, wherever; what is damaged is refused in words.
#include "trainer/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::HasSubstr;

class TokenFiles : public testing::Test {
 protected:
  std::string Make(const std::vector<uint32_t>& tokens, const TokenFileWriter::Spec& spec) {
    const std::string path = dir_.File("tokens" + std::to_string(made_++));
    const auto writer = TokenFileWriter::Open(files_, path, spec);
    EXPECT_OK(writer);
    EXPECT_OK((*writer)->Append(tokens));
    EXPECT_OK((*writer)->Finish());
    return path;
  }

  const TempDir dir_;
  PosixFiles files_;
  int made_ = 0;
};

TEST_F(TokenFiles, GiveBackTheTokensOfEverySize) {
  for (const uint32_t bytes : {1u, 2u, 4u}) {
    const uint32_t top = bytes == 1 ? 255 : bytes == 2 ? 65535 : 4'000'000'000;
    const std::vector<uint32_t> tokens = {0, top, 7, 1};
    ASSERT_OK_AND_ASSIGN(const auto file,
                         TokenFile::Open(Make(tokens, {.token_bytes = bytes})));
    EXPECT_EQ(file->size(), 4u);
    EXPECT_EQ(file->header().vocabulary, uint64_t{top} + 1);
    std::vector<int64_t> read(4);
    ASSERT_OK(file->Read(0, read));
    EXPECT_EQ(read, (std::vector<int64_t>{0, top, 7, 1}));
    ASSERT_OK(file->Read(2, std::span(read).first(2)));
    EXPECT_EQ(read[0], 7);
    EXPECT_OK(file->Verify());
  }
}

TEST_F(TokenFiles, KeepTheirAlphabet) {
  ASSERT_OK_AND_ASSIGN(
      const auto file, TokenFile::Open(Make({2, 0, 1}, {.vocabulary = 3, .alphabet = "abc"})));
  EXPECT_EQ(file->header().alphabet, "abc");
}

TEST_F(TokenFiles, RefuseToReadBeyondTheirEnd) {
  ASSERT_OK_AND_ASSIGN(const auto file, TokenFile::Open(Make({1, 2, 3}, {})));
  std::vector<int64_t> read(2);
  EXPECT_OK(file->Read(1, read));
  const Status beyond = file->Read(2, read);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message, HasSubstr("tokens 2 to 4 of 3"));
  EXPECT_FALSE(file->Read(~uint64_t{0}, read).ok());
}

TEST_F(TokenFiles, WriterRefusesATokenThatDoesNotFitAndLeavesNothing) {
  const std::string path = dir_.File("bad");
  {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         TokenFileWriter::Open(files_, path, {.vocabulary = 3}));
    ASSERT_OK(writer->Append(std::vector<uint32_t>{0, 2}));
    const Status refused = writer->Append(std::vector<uint32_t>{1, 3});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message, "token 3 is 3, not below 3");
  }
  ASSERT_OK_AND_ASSIGN(const auto left, files_.List(dir_.path()));
  EXPECT_TRUE(left.empty());
}

TEST_F(TokenFiles, AreNotOverwritten) {
  const std::string path = Make({1}, {});
  const auto again = TokenFileWriter::Open(files_, path, {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Code::kExists);
}

TEST_F(TokenFiles, CutAtAnyByteDoNotOpen) {
  std::vector<uint32_t> tokens(20);
  std::iota(tokens.begin(), tokens.end(), 0);
  const std::string path = Make(tokens, {.token_bytes = 2});
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadWhole(files_, path, 1 << 20));
  size_t visits = 0;
  for (size_t size = 0; size < whole.size(); ++size, ++visits) {
    EXPECT_FALSE(ParseTokenHeader(BytesOf(whole).first(size), size).ok()) << size;
  }
  EXPECT_EQ(visits, DataOffset(72) + 40);
  EXPECT_OK(ParseTokenHeader(BytesOf(whole), whole.size()));
}

TEST_F(TokenFiles, AFlippedByteIsFoundWhereverItLies) {
  const std::string path = Make({1, 2, 3}, {});
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadWhole(files_, path, 1 << 20));
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= 72 && at < DataOffset(72)) continue;   // padding, which nobody reads
    std::string bad = whole;
    bad[at] ^= 16;
    const std::string bad_path = dir_.File("flipped" + std::to_string(at));
    ASSERT_OK(WriteDurably(files_, bad_path, bad));
    const auto file = TokenFile::Open(bad_path);
    EXPECT_FALSE(file.ok() && (*file)->Verify().ok()) << at;
    if (!file.ok()) {
      EXPECT_THAT(file.error().message, HasSubstr(bad_path));
    }
  }
}

}  // namespace
}  // namespace keel
