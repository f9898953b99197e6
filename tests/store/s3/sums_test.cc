// Hashes, sums, and the texts of times and URLs.
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/file_helpers.h"
#include "base/random.h"
#include "base/text.h"
#include "store/s3/crc32c.h"
#include "store/s3/hashes.h"
#include "store/s3/percent.h"
#include "store/s3/times.h"

namespace keel {
namespace {

TEST(Hashes, KnownValues) {
  EXPECT_EQ(HexText(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Md5Base64(BytesOf("")), "1B2M2Y8AsgTpgAmY7PhCfg==");
  EXPECT_EQ(Base64Of("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64Of(""), "");
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32cOf(BytesOf("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32cOf({}), 0u);
  EXPECT_EQ(Crc32cBase64(BytesOf("123456789")), "4waSgw==");
  // RFC 3720, B.4: 32 bytes of zeros.
  EXPECT_EQ(Crc32cOf(BytesOf(std::string(32, '\0'))), 0x8a9136aau);
}

TEST(Crc32c, TheInstructionAndTheTablesAgreeAtEveryLength) {
  Random random(11);
  std::string bytes(40'000, '\0');
  random.Bytes(std::as_writable_bytes(std::span(bytes)));
  const std::span<const std::byte> all = BytesOf(bytes);
  for (size_t size = 0; size < 300; ++size) {
    EXPECT_EQ(Crc32cOf(all.first(size)), Crc32cByTable(all.first(size))) << size;
  }
  for (size_t size = 12'000; size < all.size(); size += 997) {
    EXPECT_EQ(Crc32cOf(all.subspan(3, size - 3)), Crc32cByTable(all.subspan(3, size - 3))) << size;
  }
}

TEST(Percent, LeavesOnlyWhatAwsLeaves) {
  EXPECT_EQ(PercentEncoded("aZ0-._~"), "aZ0-._~");
  EXPECT_EQ(PercentEncoded("a b/c=\xc3\xbc"), "a%20b%2Fc%3D%C3%BC");
  EXPECT_EQ(PercentEncodedPath("a b/c"), "a%20b/c");
}

TEST(Percent, DecodingTakesBackEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(PercentDecoded(PercentEncoded(all)), all);
  EXPECT_EQ(PercentDecoded("a+b%2b"), "a b+");
  EXPECT_EQ(PercentDecoded("100%"), "100%");
  EXPECT_EQ(PercentDecoded("%4"), "%4");
  EXPECT_EQ(PercentDecoded("%zz%41"), "%zzA");
}

TEST(Times, AreReadAsServersWriteThem) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(ParseIsoTime("2013-05-24T00:00:00Z"), 1369353600 * kSecond);
  EXPECT_EQ(ParseIsoTime("2013-05-24T00:00:00.125Z"), 1369353600 * kSecond + kSecond / 8);
  EXPECT_EQ(ParseIsoTime("9999-12-31T23:59:59Z"), ParseIsoTime("2200-12-31T23:59:59Z"));
  EXPECT_EQ(ParseHttpDate("Fri, 24 May 2013 00:00:00 GMT"), 1369353600 * kSecond);
  EXPECT_EQ(AmzDateText(1369353600 * kSecond), "20130524T000000Z");
  for (const char* text : {"", "2013-05-24", "2013-05-24T00:00:00", "2013-05-24T00:00:00+01:00",
                           "2013-05-24T0a:00:00Z", "2013-05-24T00:00:00.1xZ",
                           "0000-01-01T00:00:00Z"}) {
    EXPECT_EQ(ParseIsoTime(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseHttpDate("yesterday, perhaps"), std::nullopt);
  EXPECT_EQ(ParseHttpDate("Fri, 24 May 9999 00:00:00 GMT"), std::nullopt);
}

}  // namespace
}  // namespace keel
