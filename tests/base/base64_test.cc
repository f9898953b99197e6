// Bytes to letters and back.
#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace keel {
namespace {

TEST(Base64, WritesTheKnownExamples) {
  EXPECT_EQ(Base64Of(""), "");
  EXPECT_EQ(Base64Of("f"), "Zg==");
  EXPECT_EQ(Base64Of("fo"), "Zm8=");
  EXPECT_EQ(Base64Of("foo"), "Zm9v");
  EXPECT_EQ(Base64Of("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64Of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64Of("\xfb\xff\xfe"), "+//+");
}

TEST(Base64, ReadsBackWhateverItWrote) {
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    random.Bytes(std::as_writable_bytes(std::span(bytes)));
    const Result<std::string> read = BytesOfBase64(Base64Of(bytes));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, bytes);
  }
}

TEST(Base64, RefusesWhatItDidNotWrite) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "====", "Z===", "Zm9v\n", "Zm-v", "Zh==",
                           "Zm9=", "=Zm9"}) {
    const Result<std::string> read = BytesOfBase64(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, Code::kCorrupt);
  }
}

}  // namespace
}  // namespace keel
