// The address that leads to another host, and none where no way leads there.
#include "store/own_address.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

TEST(OwnAddress, TowardsThisHostIsTheSame) {
  EXPECT_EQ(OwnAddressTowards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(OwnAddressTowards("127.0.0.2"), "127.0.0.1");
}

TEST(OwnAddress, NamesAndGarbageAreNotLookedUp) {
  for (const char* host : {"", "localhost", "10.0.0.0.1", "nosuch.invalid"}) {
    EXPECT_EQ(OwnAddressTowards(host), "") << host;
  }
}

TEST(OwnAddress, OfAnotherFamilyHasNoNumber) {
  sockaddr address{};
  address.sa_family = AF_UNSPEC;
  EXPECT_EQ(NumericAddress(&address), "");
}

}  // namespace
}  // namespace keel
