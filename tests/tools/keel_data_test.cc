// keel tokens, records and data: files of training data made from text and images, shown again.
#include <gmock/gmock.h>

#include "tests/tools/keel_program.h"
#include "trainer/record_file.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

using testing::HasSubstr;

class KeelData : public KeelProgram {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = dir_.path() + "/" + name;
    EXPECT_OK(MakeDirs(files_, ParentDir(path)));
    EXPECT_OK(WriteDurably(files_, path, content));
    return path;
  }
  static std::vector<int64_t> TokensIn(const std::string& path) {
    const auto file = TokenFile::Open(path);
    EXPECT_OK(file);
    std::vector<int64_t> tokens((*file)->size());
    EXPECT_OK((*file)->Read(0, tokens));
    return tokens;
  }

  const std::string out_ = dir_.path() + "/out";
};

TEST_F(KeelData, BytesOfSeveralTextsBecomeTokensInTheirOrder) {
  const std::string inputs = Write("a.txt", "hi") + " " + Write("b.txt", std::string("\xff\0", 2));
  const Json made = KeelJson("tokens " + out_ + " " + inputs);
  EXPECT_EQ(made.at("tokens"), 4);
  EXPECT_EQ(made.at("vocabulary"), 256);
  EXPECT_EQ(TokensIn(out_), (std::vector<int64_t>{'h', 'i', 255, 0}));
}

TEST_F(KeelData, AnAlphabetNumbersTheBytesThatOccur) {
  ASSERT_EQ(RunKeel("tokens " + out_ + " " + Write("a.txt", "cab") + " --as alphabet").exit_code,
            0);
  EXPECT_EQ(TokensIn(out_), (std::vector<int64_t>{2, 0, 1}));
  const Json shown = KeelJson("data --verify " + out_);
  EXPECT_EQ(shown.at("kind"), "tokens");
  EXPECT_EQ(shown.at("vocabulary"), 3);
  EXPECT_EQ(shown.at("whole"), true);
  EXPECT_THAT(RunKeel("data " + out_).out, HasSubstr("alphabet abc"));
}

TEST_F(KeelData, TokensOfTwoBytesAreTakenAsTheyAre) {
  const std::string input = Write("a.bin", std::string("\x01\x00\x57\xc4", 4));
  ASSERT_EQ(RunKeel("tokens " + out_ + " " + input + " --as u16 --vocabulary 50264").exit_code, 0);
  EXPECT_EQ(TokensIn(out_), (std::vector<int64_t>{1, 0xc457}));
  const Ran refused =
      RunKeel("tokens " + out_ + "2 " + input + " --as u16 --vocabulary 50263");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, HasSubstr("a.bin: token 1 is 50263, not below 50263"));
}

TEST_F(KeelData, HalfATokenIsRefusedAndLeavesNothing) {
  const Ran ran = RunKeel("tokens " + out_ + " " + Write("a.bin", "abc") + " --as u16");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("a.bin: its length is not a multiple of 2 bytes"));
  EXPECT_FALSE(*Exists(files_, out_));
  EXPECT_FALSE(*Exists(files_, out_ + ".tmp"));
}

TEST_F(KeelData, CifarImagesBecomeRecords) {
  std::string batch;
  for (const char label : {'\x07', '\x02'}) {
    batch += label;
    batch += std::string(3072, label);
  }
  const std::string input = Write("data_batch_1.bin", batch);
  ASSERT_EQ(RunKeel("records " + out_ + " " + input + " --from cifar10").exit_code, 0);
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(out_));
  EXPECT_EQ(file->size(), 2u);
  EXPECT_EQ(file->header().fields[0].shape, (std::vector<int64_t>{3, 32, 32}));
  ASSERT_OK_AND_ASSIGN(const auto image, file->Field(1, 0));
  ASSERT_OK_AND_ASSIGN(const auto label, file->Field(0, 1));
  EXPECT_EQ(image[3071], std::byte{2});
  EXPECT_EQ(label[0], std::byte{7});
  const Ran cut = RunKeel("records " + out_ + "2 " + Write("cut.bin", batch.substr(1)) +
                          " --from cifar10");
  EXPECT_THAT(cut.out, HasSubstr("no whole number of CIFAR-10 images"));
}

TEST_F(KeelData, PicturesAreLabelledByTheirFolder) {
  const std::string colour = std::string("P6\n# made by hand\n2 1\n255\n") + "rgbRGB";
  const std::string dog = Write("dogs/1.ppm", colour);
  const std::string cat = Write("cats/1.ppm", colour);
  const Json made = KeelJson("records " + out_ + " " + dog + " " + cat);
  EXPECT_EQ(made.at("classes"), Json({"cats", "dogs"}));
  ASSERT_OK_AND_ASSIGN(const auto file, RecordFile::Open(out_));
  ASSERT_OK_AND_ASSIGN(const auto image, file->Field(0, 0));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.data()), image.size()), "rRgGbB");
  ASSERT_OK_AND_ASSIGN(const auto label, file->Field(0, 1));
  EXPECT_EQ(label[0], std::byte{1});
}

TEST_F(KeelData, PicturesOfTwoSizesAreRefusedByName) {
  const std::string small = Write("a/small.pgm", "P5 1 1 255 x");
  const std::string wide = Write("a/wide.pgm", "P5 2 1 255 xy");
  const Ran ran = RunKeel("records " + out_ + " " + small + " " + wide);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("a/wide.pgm is 2x1 with 1 channel, but "));
}

TEST_F(KeelData, APictureThatIsNoneIsRefusedByName) {
  const Ran ran = RunKeel("records " + out_ + " " + Write("a/b.pgm", "P5 4 4 255 short"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("b.pgm: no picture that this program reads"));
  EXPECT_THAT(ran.out, HasSubstr("it ends after 5 of 16 values"));
  const Ran dim = RunKeel("records " + out_ + " " + Write("a/dim.pgm", "P5 1 1 15 x"));
  EXPECT_EQ(dim.exit_code, 3);
  EXPECT_THAT(dim.out, HasSubstr("its largest value is 15, not 255"));
}

TEST_F(KeelData, AChangedBitIsFoundByVerify) {
  ASSERT_EQ(RunKeel("tokens " + out_ + " " + Write("a.txt", "hello")).exit_code, 0);
  FlipByte(out_, DataOffset(72) + 2);
  EXPECT_EQ(RunKeel("data " + out_).exit_code, 0);
  const Ran ran = RunKeel("data --verify " + out_);
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.out, HasSubstr("its tokens have changed"));
}

TEST_F(KeelData, WhatIsNoDataIsToldApart) {
  const Ran ran = RunKeel("data " + Write("a.txt", "hello"));
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("is neither a token file nor a record file"));
}

TEST_F(KeelData, HelpTeaches) {
  for (const char* command : {"tokens", "records", "data"}) {
    const Ran ran = RunKeel(std::string(command) + " --help");
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_THAT(ran.out, HasSubstr("usage: keel " + std::string(command)));
  }
}

}  // namespace
}  // namespace keel
