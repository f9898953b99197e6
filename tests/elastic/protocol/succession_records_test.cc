// The records by which the coordinator's role moves: their bytes, and what is refused.
#include <gtest/gtest.h>

#include "elastic/protocol/records.h"
#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

const BoardPlace kPlace{3, 12, "10.0.0.7:29400", "cafe"};

SuccessionRecord SomeSuccession() {
  SuccessionRecord record;
  record.term = 2;
  record.coordinator = "beef";
  record.address = "10.0.0.1:29400";
  record.heirs = {{"cafe", "10.0.0.7:29400"}, {"f00d", "[2001:db8::7]:40000"}};
  record.chosen = "cafe";
  record.met = "e7";
  record.shared = "e6";
  return record;
}

TEST(SuccessionRecords, AreReadAsTheyWereWritten) {
  SuccessionRecord record = SomeSuccession();
  EXPECT_EQ(SuccessionText(record),
            R"({"version":3,"term":2,"coordinator":"beef","address":"10.0.0.1:29400",)"
            R"("heirs":[{"incarnation":"cafe","peer":"10.0.0.7:29400"},)"
            R"({"incarnation":"f00d","peer":"[2001:db8::7]:40000"}],"chosen":"cafe",)"
            R"("met":"e7","shared":"e6","moved":null})");
  for (const std::optional<BoardPlace>& moved : {std::optional<BoardPlace>(), {kPlace}}) {
    record.moved = moved;
    const auto read = ParseSuccession("k", SuccessionText(record));
    ASSERT_OK(read);
    EXPECT_EQ(*read, record);
  }
  EXPECT_EQ(BoardPlaceText(kPlace),
            R"({"version":3,"term":3,"epoch":12,"address":"10.0.0.7:29400","by":"cafe"})");
  const auto place = ParseBoardPlace("k", BoardPlaceText(kPlace));
  ASSERT_OK(place);
  EXPECT_EQ(*place, kPlace);
  const CountedEpoch epoch{7, "e7", "beef", {"beef", "cafe"}};
  EXPECT_EQ(CountedEpochText(epoch),
            R"({"version":3,"number":7,"id":"e7","coordinator":"beef","hosts":"beef cafe",)"
            R"("by_lease":false})");
  const auto counted = ParseCountedEpoch("k", CountedEpochText(epoch));
  ASSERT_OK(counted);
  EXPECT_EQ(*counted, epoch);
  const LinkRecord link{kPlace, "10.0.0.7:29401", "e12"};
  EXPECT_EQ(LinkText(link),
            R"({"version":3,"place":{"term":3,"epoch":12,"address":"10.0.0.7:29400","by":"cafe"},)"
            R"("peer":"10.0.0.7:29401","epoch":"e12"})");
  const auto linked = ParseLink("k", LinkText(link));
  ASSERT_OK(linked);
  EXPECT_EQ(*linked, link);
}

TEST(SuccessionRecords, WhatIsNoneIsRefusedByName) {
  EXPECT_FALSE(ParseBoardPlace("k", "-").ok());
  EXPECT_FALSE(ParseBoardPlace("k", R"({"version":3,"term":3})").ok());
  EXPECT_FALSE(ParseSuccession("k", R"({"version":1})").ok());
  const auto odd = ParseSuccession(
      "k", R"({"version":3,"term":2,"coordinator":"a","address":"b","heirs":[],"chosen":"",)"
           R"("met":"","shared":"","moved":{"term":3,"epoch":1,"address":"c","by":"d","more":1}})");
  ASSERT_FALSE(odd.ok());
  EXPECT_NE(odd.error().message.find("store key 'k'"), std::string::npos) << odd.error().message;
}

TEST(SuccessionRecords, OfTwoBoardsTheOneWithTheHigherEpochIsAhead) {
  const auto with = [](int64_t term, int64_t epoch, const std::string& address) {
    return BoardPlace{term, epoch, address, "x"};
  };
  EXPECT_TRUE(IsAhead(with(1, 8, "a"), with(5, 7, "a")));
  EXPECT_TRUE(IsAhead(with(2, 7, "a"), with(1, 7, "b")));
  EXPECT_TRUE(IsAhead(with(2, 7, "b"), with(2, 7, "a"))) << "of two alike just one";
  EXPECT_FALSE(IsAhead(with(2, 7, "a"), with(2, 7, "b")));
  EXPECT_FALSE(IsAhead(kPlace, kPlace));
}

}  // namespace
}  // namespace keel
