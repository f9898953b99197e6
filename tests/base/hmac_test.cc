// HMAC-SHA256: what RFC 4231 says, and the comparison of secrets.
#include "base/hmac.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

std::string HexHmac(const std::string& key, const std::string& text) {
  return HexText(HmacSha256(key, text));
}

TEST(Hmac, KnownValues) {
  ASSERT_OK(HmacReady());
  EXPECT_EQ(HexHmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HexHmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(HexHmac(std::string(131, '\xaa'),
                    "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(HexHmac("", ""), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Hmac, SecretsAreTheSameWhereEachByteIs) {
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_TRUE(SameSecret("abc", "abc"));
  for (const char* const other : {"abd", "bbc", "ab", "abcd", ""}) {
    EXPECT_FALSE(SameSecret("abc", other)) << other;
  }
}

}  // namespace
}  // namespace keel
