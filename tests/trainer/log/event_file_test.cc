// Event files: known checksums and bytes; whole files are read by TensorBoard itself in
// tests/python/event_file_test.cc.
#include "trainer/log/event_file.h"

#include <gtest/gtest.h>

#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::string HexOf(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<uint8_t>(byte)));
    hex += two;
  }
  return hex;
}

TEST(EventFile, ChecksumsAreThoseOfRfc3720) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
}

TEST(EventFile, AScalarIsTheMessageThatProtocolBuffersSay) {
  const std::vector<EventScalar> scalars = {{"a", 1.0}};
  EXPECT_EQ(HexOf(ScalarsEvent(2'000'000'000, 300, scalars)),
            "090000000000000040"    // 1: 2.0
            "10ac02"                // 2: 300
            "2a0a"                  // 5, 10 bytes
            "0a08"                  //   1, 8 bytes
            "0a0161"                //     1: "a"
            "150000803f");          //     2: 1.0f
}

TEST(EventFile, HoldsItsVersionAndWhatWasAdded) {
  MemoryFiles files;
  ASSERT_OK_AND_ASSIGN(const auto events, EventFile::Create(files, "/a/b", 1'000'000'007));
  EXPECT_TRUE(events->path().starts_with("/a/b/events.out.tfevents.1."));
  const std::vector<EventScalar> scalars = {{"loss", 0.5}, {"lr", 0.1}};
  ASSERT_OK(events->Add(2'000'000'000, 7, scalars));
  ASSERT_OK_AND_ASSIGN(const std::string content, ReadWhole(files, events->path(), 1 << 20));
  EXPECT_EQ(content, EventRecord(VersionEvent(1'000'000'007)) +
                         EventRecord(ScalarsEvent(2'000'000'000, 7, scalars)));
}

TEST(EventFile, IsNeverTheFileOfAnother) {
  MemoryFiles files;
  ASSERT_OK_AND_ASSIGN(const auto one, EventFile::Create(files, "/a", 5));
  EXPECT_FALSE(EventFile::Create(files, "/a", 5).ok());
  EXPECT_TRUE(EventFile::Create(files, "/a", 6).ok());
}

}  // namespace
}  // namespace keel
