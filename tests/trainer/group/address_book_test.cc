// AddressBook: cards that travel over a real TCPStore, what is left of them there, and bytes that
// are none.
#include "trainer/group/address_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <utility>

#include "tests/trainer/crew.h"
#include "tests/trainer/group/unused_gloo.h"
#include "trainer/group/address_store.h"

namespace keel {
namespace {

using testing::ElementsAre;

MemberCard CardOf(int rank) {
  MemberCard card;
  card.address.assign(static_cast<size_t>(rank) * 7, static_cast<uint8_t>(rank));
  card.memory = {.host = 4, .pid = rank, .address = 5, .secret = 6, .bytes_min = 7};
  card.notes = {.address = 8, .number = static_cast<uint64_t>(rank)};
  card.host = "node" + std::to_string(rank);
  return card;
}

std::string WhatIsWrongWith(const std::vector<uint8_t>& bytes, int size) {
  try {
    (void)BookOf(bytes, size);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(AddressBook, IsReadAsItWasWritten) {
  const std::vector<uint8_t> bytes = BytesOf({CardOf(0), CardOf(1), CardOf(2)});
  const std::vector<MemberCard> book = BookOf(bytes, 3);
  EXPECT_EQ(BytesOf(book), bytes);
  EXPECT_THAT(book[1].address, ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(book[2].memory.pid, 2);
  EXPECT_EQ(book[2].notes.number, 2u);
  EXPECT_EQ(book[2].host, "node2");
}

TEST(AddressBook, IsRefusedWhereItIsShorterOrLonger) {
  const std::vector<uint8_t> bytes = BytesOf({CardOf(1), CardOf(2)});
  EXPECT_EQ(WhatIsWrongWith(bytes, 2), "");
  EXPECT_EQ(WhatIsWrongWith(bytes, 1), "more than 1 cards");
  for (size_t kept = 0; kept < bytes.size(); ++kept) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(kept));
    EXPECT_EQ(WhatIsWrongWith(cut, 2), "a card that was cut short") << kept;
  }
}

// Each member has a connection of its own.
BreakableStore StoreOf(const GroupCrew& crew, const std::string& prefix, int rank, int size,
                       std::function<bool()> broken = [] { return false; }) {
  return {c10::make_intrusive<c10d::PrefixStore>(prefix, crew.SpecOf(rank, size, prefix).store),
          std::move(broken), size};
}

TEST(AddressBook, IsTheSameForAllAndAloneStaysInTheStore) {
  GroupCrew crew;
  const auto plain = crew.SpecOf(0, 1, "").store;
  int64_t keys = plain->getNumKeys();
  for (const int size : {1, 2, 3, 20, 70}) {
    const std::string prefix = crew.NewPrefix();
    std::vector<std::vector<uint8_t>> books(static_cast<size_t>(size));
    GroupCrew::OnThreads(size, [&](int rank) {
      BreakableStore store = StoreOf(crew, prefix, rank, size);
      books[static_cast<size_t>(rank)] =
          BytesOf(ExchangeCards(store, rank, size, CardOf(rank), [](int) {}));
    });
    std::vector<MemberCard> expected;
    for (int rank = 0; rank < size; ++rank) expected.push_back(CardOf(rank));
    for (const auto& book : books) EXPECT_EQ(book, BytesOf(expected));
    keys += size > 1;
    EXPECT_EQ(plain->getNumKeys(), keys) << size << " members";
  }
}

// The first member tells which of many it waits for, the others that they wait for the first one.
TEST(AddressBook, WhoIsMissingIsNamedUntilABreak) {
  GroupCrew crew;
  constexpr int kSize = 40, kMissing = 30;
  const std::string prefix = crew.NewPrefix();
  std::atomic<bool> broken{false};
  std::atomic<int> of_first{-1}, of_second{-1};
  GroupCrew::OnThreads(kSize, [&](int rank) {
    if (rank == kMissing) {
      const TimePoint by = RealClock().Monotonic() + std::chrono::seconds(30);
      while ((of_first != kMissing || of_second != 0) && RealClock().Monotonic() < by) {
        RealClock().SleepFor(std::chrono::milliseconds(1));
      }
      broken = true;
      return;
    }
    BreakableStore store = StoreOf(crew, prefix, rank, kSize, [&] { return broken.load(); });
    try {
      (void)ExchangeCards(store, rank, kSize, CardOf(rank), [&](int waited_for) {
        if (rank == 0) of_first = waited_for;
        if (rank == 1) of_second = waited_for;
      });
      ADD_FAILURE() << "rank " << rank << " has met a member that is not there";
    } catch (const std::runtime_error& error) {
      const std::string key = rank == 0 ? "card/30" : "book";
      EXPECT_EQ(error.what(), "broken while waiting for key " + key) << rank;
    }
  });
  EXPECT_EQ(of_first, kMissing);
  EXPECT_EQ(of_second, 0);
}

TEST(AddressStore, FindsWhatWasPutThereUntilABreak) {
  bool broken = false;
  AddressStore store([&] { return broken; });
  EXPECT_TRUE(store.Of(3).empty());
  EXPECT_THROW((void)store.get("0/3"), std::runtime_error);
  store.Put(3, {1, 2});
  store.set("0/4", std::vector<uint8_t>{5});
  EXPECT_THAT(store.get("0/3"), ElementsAre(1, 2));
  EXPECT_THAT(store.Of(4), ElementsAre(5));
  broken = true;
  EXPECT_THROW((void)store.get("0/3"), std::runtime_error);
  EXPECT_THROW((void)store.add("0/3", 1), std::runtime_error);
}

TEST(AddressStore, KnowsWhereGlooListensOrThatItDoesNot) {
  for (const auto& [address, family] : {std::pair{"127.0.0.1", AF_INET}, {"::1", AF_INET6}}) {
    const auto card = UnusedGloo(address).card();
    const auto where = SocketAddressOf(card.address);
    ASSERT_TRUE(where.has_value()) << address;
    EXPECT_EQ(where->ss_family, family);
    EXPECT_NE(reinterpret_cast<const sockaddr_in&>(*where).sin_port, 0);
  }
  EXPECT_FALSE(SocketAddressOf({}).has_value());
  EXPECT_FALSE(SocketAddressOf(std::vector<uint8_t>(300, 0xff)).has_value());
  EXPECT_FALSE(SocketAddressOf(std::vector<uint8_t>(300, 0)).has_value());
}

}  // namespace
}  // namespace keel
