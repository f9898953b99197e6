// Safetensors headers and files: what is accepted, what is refused and in which words, and what a
// failing disk leaves of one that is being written.
#include <cstring>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "ckpt/safetensors_file.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// A file of this header, followed by `data`.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const uint64_t bytes = header.size();
  std::memcpy(file.data(), &bytes, sizeof bytes);
  return file + header + data;
}

std::vector<TensorSpec> AllKinds() {
  std::vector<TensorSpec> specs;
  for (const Dtype dtype : AllDtypes()) {
    if (dtype != Dtype::kC128) specs.push_back({"t." + std::string(DtypeName(dtype)), dtype, {3}});
  }
  specs.push_back({"scalar", Dtype::kI64, {}});
  specs.push_back({"empty", Dtype::kF32, {4, 0}});
  specs.push_back({"a \"quoted\" \\ name, Gödel 🧮", Dtype::kU8, {1}});
  return specs;
}

TEST(SafetensorsHeader, WhatIsMadeIsParsedAgain) {
  ASSERT_OK_AND_ASSIGN(const auto made, MakeSafetensorsHeader(AllKinds(), {{"note", "a\n\"b\""}}));
  EXPECT_EQ(made.tensors.size(), AllKinds().size());
  ASSERT_OK_AND_ASSIGN(const std::string head, SafetensorsHead(made));
  EXPECT_EQ(head.size() % 8, 0u);
  uint64_t bytes;
  std::memcpy(&bytes, head.data(), 8);
  EXPECT_EQ(bytes, head.size() - 8);
  ASSERT_OK_AND_ASSIGN(const auto parsed,
                       ParseSafetensorsHeader(head.substr(8), made.data_bytes()));
  EXPECT_EQ(parsed, made);
  for (const SafetensorsTensor& tensor : made.tensors) {
    const uint32_t alignment = tensor.spec.dtype == Dtype::kC64 ? 4 : DtypeBytes(tensor.spec.dtype);
    EXPECT_EQ(tensor.begin % alignment, 0u) << tensor.spec.name;
  }
}

TEST(SafetensorsHeader, HasTheBytesOfTheFormatsOwnExample) {
  ASSERT_OK_AND_ASSIGN(const auto header,
                       MakeSafetensorsHeader({{"w", Dtype::kF32, {2}}}, {{"format", "pt"}}));
  ASSERT_OK_AND_ASSIGN(const std::string head, SafetensorsHead(header));
  const std::string json = "{\"__metadata__\":{\"format\":\"pt\"}," +
                           Entry("w", "F32", "[2]", "[0,8]") + "}";
  EXPECT_EQ(head, FileOf(json + std::string(8 - json.size() % 8, ' '), ""));
  ASSERT_OK_AND_ASSIGN(const auto none, MakeSafetensorsHeader({}, {}));
  ASSERT_OK_AND_ASSIGN(const std::string empty, SafetensorsHead(none));
  EXPECT_EQ(empty, FileOf("{}      ", ""));
}

TEST(SafetensorsHeader, ListsAllThatTheFormatCannotHold) {
  const auto made = MakeSafetensorsHeader({{"c", Dtype::kC128, {1}},
                                           {"__metadata__", Dtype::kF32, {1}},
                                           {"x", Dtype::kF32, {1}},
                                           {"x", Dtype::kF64, {1}}},
                                          {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kInvalid);
  for (const char* part : {"3 problems", "'c': safetensors has no c128", "'__metadata__'",
                           "'x': it is there twice"}) {
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  }
}

TEST(SafetensorsHeader, AcceptsWhatTheReferenceReaderAccepts) {
  const std::string a = Entry("a", "U8", "[4]", "[0,4]");
  const std::string headers[] = {
      "{" + a + "}",
      "{" + a + "}  \n ",
      "{ \"__metadata__\" : null , " + a + "}",
      "{" + a + ",\"__metadata__\":{\"k\":\"v\",\"\":\"\"}}",
      "{" + Entry("b", "U8", "[0]", "[4,4]") + "," + a + "}",
      "{" + a + "," + Entry("b", "F64", "[7,0]", "[0,0]") + "}",
      "{" + Entry("b", "I16", "[1]", "[2,4]") + "," + Entry("a", "F16", "[1,1]", "[0,2]") + "}",
      "{" + Entry("", "U32", "[]", "[0,4]") + "}",
      "{" + Entry("\\u0000a", "U32", "[]", "[0,4]") + "}",
      "{\"a\":{\"data_offsets\":[0,4],\"more\":[{}],\"shape\":[4],\"dtype\":\"I8\"}}",
      "{" + a + "," + Entry("z", "U8", "[0,4294967296,4294967296]", "[4,4]") + "}",
  };
  for (const std::string& header : headers) {
    EXPECT_OK(ParseSafetensorsHeader(header, 4)) << header;
  }
  ASSERT_OK_AND_ASSIGN(const auto parsed, ParseSafetensorsHeader(headers[6], 4));
  EXPECT_EQ(parsed.tensors[0].spec.name, "a") << "as they lie in the data";
}

struct Hostile {
  std::string header;
  std::string says;
  Code code = Code::kCorrupt;
};

TEST(SafetensorsHeader, RefusesInWordsWhatMakesNoSense) {
  const std::string a = Entry("a", "U8", "[4]", "[0,4]");
  const auto with = [](const std::string& entries) { return "{" + entries + "}"; };
  const Hostile table[] = {
      {"", "does not begin with '{'"},
      {" {}", "does not begin with '{'"},
      {"[]", "does not begin with '{'"},
      {"{", "line 1, column 2"},
      {with(a) + "x", "line 1, column"},
      {with(a) + std::string(1, '\0'), "line 1, column"},
      {"{\"a\xff\":1}", "line 1, column"},
      {"{\"a\":\"\\ud800\"}", "line 1, column"},
      {with(a + "," + a), "the key 'a' a second time"},
      {with("\"__metadata__\":{},\"__metadata__\":{}"), "a second time"},
      {with("\"__metadata__\":[]"), "__metadata__: it is no object"},
      {with("\"__metadata__\":{\"k\":1}"), "__metadata__: the value of 'k' is no text"},
      {with("\"a\":null"), "tensor 'a': field 'dtype': expected an object"},
      {with("\"a\":[\"U8\",[4],[0,4]]"), "expected an object"},
      {with("\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}"), "field 'dtype' is missing"},
      {with("\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}"), "field 'shape' is missing"},
      {with("\"a\":{\"dtype\":\"U8\",\"shape\":[4]}"), "field 'data_offsets' is missing"},
      {with("\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"),
       "'dtype' a second time"},
      {with(Entry("a", "U8", "[4.0]", "[0,4]")), "expected a whole number"},
      {with(Entry("a", "U8", "[4]", "[-0,4]")), "expected a whole number"},
      {with(Entry("a", "U8", "[\"4\"]", "[0,4]")), "expected a whole number"},
      {with(Entry("a", "U8", "4", "[0,4]")), "expected an array"},
      {with(Entry("a", "U8", "[-4]", "[0,4]")), "no tensor can have its shape"},
      {with(Entry("a", "U8", "[18446744073709551616]", "[0,4]")), "does not fit 64 bits"},
      {with(Entry("a", "U8", "[9223372036854775808]", "[0,4]")), "than 9223372036854775807"},
      {with(Entry("a", "U8", "[4294967296,4294967296]", "[0,4]")), "no tensor can have its shape"},
      {with(Entry("a", "U8", "[4294967296,4294967296,0]", "[0,0]")), "can have its shape"},
      {with(Entry("a", "F64", "[4611686018427387904]", "[0,0]")), "no tensor can have its shape"},
      {with(Entry("a", "F32", "[2]", "[0,4]")), "f32 [2] takes 8 bytes, its data_offsets [0, 4]"},
      {with(Entry("a", "U8", "[4]", "[4,0]")), "no begin and end"},
      {with(Entry("a", "U8", "[4]", "[-4,0]")), "no begin and end"},
      {with(Entry("a", "U8", "[4]", "[0,4,4]")), "no begin and end"},
      {with(Entry("a", "U8", "[4]", "[4]")), "no begin and end"},
      {with(Entry("a", "U8", "[4]", "[0,1e1]")), "expected a whole number"},
      {with(Entry("a", "U8", "[3]", "[1,4]")), "begins at byte 1 of the data, but byte 0"},
      {with(Entry("a", "U8", "[3]", "[0,3]")), "take 3 bytes of data, but the file has 4"},
      {with(Entry("a", "U8", "[5]", "[0,5]")), "cut short"},
      {with(a + "," + Entry("b", "U8", "[2]", "[2,4]")), "'b' begins at byte 2 of the data, in"},
      {with(a + "," + Entry("b", "U8", "[0]", "[2,2]")), "inside tensor 'a'"},
      {with(a + "," + Entry("b", "U8", "[0]", "[5,5]")), "byte 4 belongs to no tensor"},
      {with(Entry("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]")), "cut short"},
      {with(Entry("a", "F4", "[8]", "[0,4]")), "dtype F4 is one that checkpoints cannot hold",
       Code::kInvalid},
      {with(Entry("a", "F8_E8M0", "[4]", "[0,4]")), "F8_E8M0", Code::kInvalid},
      {with(Entry("a", "u8", "[4]", "[0,4]")), "'u8' is not a dtype of safetensors",
       Code::kInvalid},
      {"{\"a\":" + std::string(100'000, '['), "nested deeper"},
  };
  for (const Hostile& hostile : table) {
    const auto parsed = ParseSafetensorsHeader(hostile.header, 4);
    ASSERT_FALSE(parsed.ok()) << hostile.header;
    EXPECT_NE(parsed.error().message.find(hostile.says), std::string::npos)
        << hostile.header << "\nsays: " << parsed.error().message;
    EXPECT_EQ(parsed.error().code, hostile.code) << hostile.header;
  }
}

// A disk in memory with one small file, /m.safetensors.
class SafetensorsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MakeSafetensorsHeader({{"w", Dtype::kF32, {2, 2}}, {"b", Dtype::kU8, {3}}},
                                      {{"note", "x"}});
    ASSERT_OK(made);
    header_ = *std::move(made);
    ASSERT_OK(Write(files_, false));
    ASSERT_OK_AND_ASSIGN(content_, ReadWhole(files_, kPath, 10'000));
  }

  Status Write(Files& files, bool replace, const std::string& data = "0123456789abcdefXYZ") {
    KEEL_TRY_ASSIGN(const auto writer,
                    SafetensorsWriter::Begin(files, {kPath, "id", replace}, header_));
    KEEL_TRY(writer->Append(BytesOf(data)));
    return writer->Commit();
  }

  void Replace(std::string_view content) { ASSERT_OK(WriteDurably(files_, kPath, content)); }

  static Result<std::string> ReadTensor(Files& files, size_t tensor) {
    KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(files, kPath));
    std::string data(file->header().tensors.at(tensor).bytes, '\0');
    KEEL_TRY(file->Read(tensor, 0, std::as_writable_bytes(std::span(data))));
    return data;
  }

  static constexpr const char* kPath = "/m.safetensors";
  MemoryFiles files_;
  SafetensorsHeader header_;
  std::string content_;
};

TEST_F(SafetensorsFileTest, GivesBackWhatWasWritten) {
  ASSERT_OK_AND_ASSIGN(const auto file, SafetensorsFile::Open(files_, kPath));
  EXPECT_EQ(file->header(), header_);
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadTensor(files_, 1));
  EXPECT_EQ(bytes, "XYZ");
  std::byte middle[4];
  ASSERT_OK(file->Read(0, 6, middle));
  EXPECT_EQ(std::memcmp(middle, "6789", 4), 0);
}

TEST_F(SafetensorsFileTest, EveryTruncationIsRefusedAndNamesTheFile) {
  for (size_t bytes = 0; bytes < content_.size(); ++bytes) {
    Replace(std::string_view(content_).substr(0, bytes));
    const auto file = SafetensorsFile::Open(files_, kPath);
    ASSERT_FALSE(file.ok()) << bytes;
    EXPECT_EQ(file.error().code, Code::kCorrupt) << bytes;
    EXPECT_NE(file.error().message.find(kPath), std::string::npos) << file.error().message;
  }
  Replace(content_ + "x");
  EXPECT_FALSE(SafetensorsFile::Open(files_, kPath).ok());
}

// The format has no digests: a flip may leave another valid header. It then must hold together.
TEST_F(SafetensorsFileTest, AFlippedBitIsRefusedOrLeavesAHeaderThatFits) {
  const size_t head_bytes = content_.size() - header_.data_bytes();
  int accepted = 0;
  for (size_t bit = 0; bit < head_bytes * 8; ++bit) {
    std::string bad = content_;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    Replace(bad);
    const auto file = SafetensorsFile::Open(files_, kPath);
    if (!file.ok()) continue;
    ++accepted;
    uint64_t at = 0;
    for (const SafetensorsTensor& tensor : (*file)->header().tensors) {
      EXPECT_EQ(tensor.begin, at) << bit;
      EXPECT_EQ(*ContentBytes(tensor.spec), tensor.bytes) << bit;
      at += tensor.bytes;
    }
    EXPECT_EQ(at, header_.data_bytes()) << bit;
  }
  EXPECT_GT(accepted, 0) << "a bit of a tensor's name";
  std::printf("%zu flipped bits, %d give another valid header\n", head_bytes * 8, accepted);
}

TEST_F(SafetensorsFileTest, AHostileLengthAllocatesNothing) {
  for (const uint64_t length : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 7,
                                uint64_t{content_.size() - 7}}) {
    std::string bad = content_;
    std::memcpy(bad.data(), &length, 8);
    Replace(bad);
    const auto file = SafetensorsFile::Open(files_, kPath);
    ASSERT_FALSE(file.ok());
    EXPECT_NE(file.error().message.find(std::to_string(length) + " bytes"), std::string::npos);
  }
}

TEST_F(SafetensorsFileTest, AHeaderBeyondTheLimitIsRefusedThoughTheFileHoldsIt) {
  TempDir dir;
  PosixFiles files;
  ASSERT_OK_AND_ASSIGN(const auto file,
                       files.Open(dir.File("big"), {.write = true, .create = true}));
  const uint64_t length = kSafetensorsHeaderBytesMax + 1;
  ASSERT_OK(file->WriteAt(0, std::as_bytes(std::span(&length, 1))));
  ASSERT_OK(file->Truncate(length + 100));
  const auto opened = SafetensorsFile::Open(files, dir.File("big"));
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("100 MB are the most"), std::string::npos)
      << opened.error().message;
}

TEST_F(SafetensorsFileTest, ADirectoryIsNoFile) {
  ASSERT_OK(files_.MakeDir("/dir"));
  const auto file = SafetensorsFile::Open(files_, "/dir");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message, "/dir is a directory, not a file");
}

TEST_F(SafetensorsFileTest, WhatIsThereIsReplacedOnlyWhenAllowed) {
  const Status refused = Write(files_, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kExists);
  ASSERT_OK(Write(files_, true, "0123456789abcdefxyz"));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadTensor(files_, 1));
  EXPECT_EQ(bytes, "xyz");
}

TEST_F(SafetensorsFileTest, AWriterThatGivesUpLeavesNothing) {
  {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         SafetensorsWriter::Begin(files_, {"/other", "id"}, header_));
    ASSERT_OK(writer->Append(BytesOf("01234")));
  }
  ASSERT_OK_AND_ASSIGN(const auto entries, files_.List("/"));
  EXPECT_EQ(entries.size(), 1u) << "only the file that was there";
}

TEST_F(SafetensorsFileTest, AFailureAtAnyCallLeavesTheOldFileOrTheNewOne) {
  int failures = 0;
  for (int call = 1, struck = 1; struck > 0; ++call) {
    ASSERT_OK(Write(files_, true));
    FaultyFiles faulty(files_);
    faulty.Plan({.at_call = call, .error_number = ENOSPC});
    const Status written = Write(faulty, true, "0123456789abcdefxyz");
    struck = faulty.strikes();
    failures += written.ok() ? 0 : 1;
    EXPECT_EQ(written.ok(), struck == 0) << "call " << call;
    ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadTensor(files_, 1));
    EXPECT_TRUE(bytes == "xyz" || (!written.ok() && bytes == "XYZ")) << call;
    ASSERT_OK_AND_ASSIGN(const auto entries, files_.List("/"));
    EXPECT_EQ(entries.size(), 1u) << "call " << call << " left a temporary file";
  }
  EXPECT_GE(failures, 6);
}

TEST_F(SafetensorsFileTest, PowerLossAtAnyCallLeavesTheOldFileOrTheNewOne) {
  int disks = 0;
  for (int call = 1, struck = 1; struck > 0; ++call) {
    MemoryFiles files;
    ASSERT_OK(Write(files, false));
    FaultyFiles faulty(files);
    faulty.Plan({.kind = Fault::Kind::kCrash, .at_call = call});
    const bool written = Write(faulty, true, "0123456789abcdefxyz").ok();
    struck = faulty.strikes();
    for (const auto& disk : files.PossibleDisks(4, call)) {
      ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadTensor(*disk, 1));
      EXPECT_TRUE(bytes == "xyz" || (!written && bytes == "XYZ")) << call;
      ++disks;
    }
  }
  std::printf("%d disks after a loss of power\n", disks);
}

// A search through the others for each would take hundreds of times as long.
TEST(SafetensorsHeader, TakesManyKeysInLinearTime) {
  std::map<std::string, std::string> metadata;
  for (int i = 0; i < Rounds(100'000, 10'000); ++i) metadata["key-" + std::to_string(i)] = "text";
  ASSERT_OK_AND_ASSIGN(const auto made, MakeSafetensorsHeader({}, metadata));
  ASSERT_OK_AND_ASSIGN(const std::string head, SafetensorsHead(made));
  ASSERT_OK_AND_ASSIGN(const auto parsed, ParseSafetensorsHeader(head.substr(8), 0));
  EXPECT_EQ(parsed.metadata, metadata);
}

TEST(SafetensorsHeader, RefusesToMakeAShapeThatNoReaderTakes) {
  const auto made = MakeSafetensorsHeader({{"x", Dtype::kU8, {4, int64_t{1} << 62, 0}}}, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kInvalid);
  EXPECT_NE(made.error().message.find("'x': no reader of safetensors takes the shape [4, 46"),
            std::string::npos)
      << made.error().message;
  EXPECT_OK(MakeSafetensorsHeader({{"x", Dtype::kU8, {0, 4, int64_t{1} << 62}}}, {}));
}

}  // namespace
}  // namespace keel
