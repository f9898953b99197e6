// Forward look-ups, and the answer to reverse ones.
#include "store/resolve.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>

#include "store/numeric_names.h"

namespace keel {
namespace {

const Duration kLimit = std::chrono::seconds(20);

TEST(ResolveHost, ANumberIsItsOwnAnswer) {
  EXPECT_EQ(*ResolveHost("10.1.2.3", kLimit), "10.1.2.3");
  EXPECT_EQ(*ResolveHost("2001:db8:0:0::7", kLimit), "2001:db8::7");
}

TEST(ResolveHost, ANameBecomesANumber) {
  EXPECT_EQ(*ResolveHost("localhost", kLimit), "127.0.0.1");
}

// Not localhost, which is known without a look-up.
TEST(ResolveHost, TheNameServiceIsAsked) {
  std::array<char, 256> own{};
  ASSERT_EQ(gethostname(own.data(), own.size() - 1), 0);
  addrinfo* found = nullptr;
  if (getaddrinfo(own.data(), nullptr, nullptr, &found) != 0) {
    GTEST_SKIP() << "this machine's own name has no address";
  }
  freeaddrinfo(found);
  const Result<std::string> number = ResolveHost(own.data(), kLimit);
  ASSERT_TRUE(number.ok()) << number.error().message;
  EXPECT_EQ(*ResolveHost(*number, kLimit), *number);
}

TEST(ResolveHost, AnEmptyNameIsRefused) {
  EXPECT_EQ(ResolveHost("", kLimit).error().code, Code::kInvalid);
}

// In this very program getnameinfo() answers with numbers.
TEST(NameOfAddress, TheNameOfLoopbackIsNoNumber) {
  const Result<std::string> name = NameOfAddress("127.0.0.1", kLimit);
  if (!name.ok()) {
    ASSERT_EQ(name.error().code, Code::kNotFound) << name.error().message;
    GTEST_SKIP() << "this machine has no name for 127.0.0.1";
  }
  EXPECT_NE(*name, "");
  EXPECT_NE(*name, "127.0.0.1");
}

TEST(NameOfAddress, WhatIsNoNumberIsRefused) {
  EXPECT_EQ(NameOfAddress("localhost", kLimit).error().code, Code::kInvalid);
}

TEST(NumericNames, AreActiveInThisProgram) { EXPECT_TRUE(NumericNamesActive()); }

TEST(NumericNames, AnswerWithTheNumberEvenWhereANameIsRequired) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(443);
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  char host[64] = "";
  char service[64] = "";
  ASSERT_EQ(getnameinfo(reinterpret_cast<const sockaddr*>(&address), sizeof address, host,
                        sizeof host, service, sizeof service, NI_NAMEREQD),
            0);
  EXPECT_STREQ(host, "127.0.0.1");
  EXPECT_STREQ(service, "443");
}

}  // namespace
}  // namespace keel
