// ckpt/FORMAT.md says what the code does: its worked example is what the code writes.
#include "ckpt/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "base/posix_files.h"
#include "ckpt/names.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

// The text between the fences that follow "<!-- mark -->".
std::string Block(const std::string& mark) {
  PosixFiles files;
  const auto text = ReadWhole(files, KEEL_SOURCE_DIR "/ckpt/FORMAT.md", 1 << 20);
  EXPECT_OK(text);
  const size_t at = text->find("<!-- " + mark + " -->\n```\n");
  EXPECT_NE(at, std::string::npos) << mark;
  const size_t begin = text->find("```\n", at) + 4;
  return text->substr(begin, text->find("```\n", begin) - begin);
}

// Lines of 16 bytes: place in decimal, hex, text. Lines of zeros are left out.
std::string Dump(std::string_view bytes) {
  std::string dump;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    const std::string_view line = bytes.substr(at, 16);
    if (line.find_first_not_of('\0') == std::string_view::npos) continue;
    char text[32];
    std::snprintf(text, sizeof text, "%5zu ", at);
    dump += text;
    for (size_t i = 0; i < 16; ++i) {
      std::snprintf(text, sizeof text, " %02x",
                    static_cast<unsigned char>(i < line.size() ? line[i] : 0));
      dump += i < line.size() ? text : "   ";
    }
    dump += "  ";
    for (const char c : line) dump += c >= 32 && c < 127 ? c : '.';
    dump += '\n';
  }
  return dump;
}

class FormatTest : public testing::Test {
 protected:
  void SetUp() override {
    const float numbers[] = {1.0f, -2.0f};
    MemorySource source({std::as_bytes(std::span(numbers))});
    SavePlan plan;
    plan.root = "/c";
    plan.attempt = "0123456789abcdef";
    plan.description.step = 7;
    plan.description.codec = Codec::kNone;
    plan.description.metadata["lanes"] = int64_t{4};
    plan.description.user["note"] = "hi";
    plan.description.layout = *Layout::Make({{"w", Dtype::kF32, {2}}}, 64);
    ASSERT_OK(SaveCheckpoint(files_, plan, source, {}, 0));
  }
  std::string Content(const std::string& name) {
    return *ReadWhole(files_, "/c/step-000000007/" + name, 1 << 20);
  }

  MemoryFiles files_;
};

TEST_F(FormatTest, TheDocumentsShardIsWhatTheCodeWrites) {
  EXPECT_EQ(Dump(Content("0123456789abcdef-shard-0000-of-0001.keel")), Block("shard"));
}

TEST_F(FormatTest, TheDocumentsManifestIsWhatTheCodeWrites) {
  EXPECT_EQ(Content("manifest.json"), Block("manifest"));
}

TEST(Format, TheDocumentHoldsTheNumbersOfTheHeader) {
  PosixFiles files;
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       ReadWhole(files, KEEL_SOURCE_DIR "/ckpt/FORMAT.md", 1 << 20));
  const auto says = [&](const std::string& what) {
    EXPECT_NE(text.find(what), std::string::npos) << what;
  };
  says("# The checkpoint format, version " + std::to_string(kFormatVersion));
  says(std::to_string(kFrameBytes) + " unless asked otherwise");
  says("a multiple of " + std::to_string(kTensorAlignment) + " from " +
       std::to_string(kFrameBytesMin) + " to " + std::to_string(kFrameBytesMax >> 20) + " MiB");
  says("**Header**, " + std::to_string(kShardHeaderBytes) + " bytes");
  says("**Tail**, the last " + std::to_string(kShardTailBytes) + " bytes");
  says("**Index**: " + std::to_string(kIndexEntryBytes) + " bytes");
  says("each group of " + std::to_string(kSlotFrames));
  says("a multiple of " + std::to_string(kSlotAlignment) + " in the file");
  says("at most " + std::to_string(kShardsMax));
  says("| " + std::to_string(kFrameHeaderBytes) + " | | payload");
  says("n + " + std::to_string(StoredBytesMax(0)) + " stored bytes");
  static_assert(kStreamBytesMax == uint64_t{1} << 56 && kStepMax + 1 == 1'000'000'000'000'000'000);
  says("at most 2^56 bytes");
  says("whole number below 10^18");
  says("at most " + std::to_string(kDescriptionBytesMax >> 20) + " MiB; the same in all shards");
  says(std::to_string(kManifestBytesMax >> 20) + " MiB. A tensor's digest");
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
    says(std::to_string(static_cast<int>(codec)) + " " + std::string(CodecName(codec)));
  }
  for (const Dtype dtype : AllDtypes()) says(std::string(DtypeName(dtype)));
}

}  // namespace
}  // namespace keel
