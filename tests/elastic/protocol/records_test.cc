// The board's records: what is written is read back, and nothing else is taken for one.
#include "elastic/protocol/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/harness/sanitizers.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

using testing::HasSubstr;

MemberRecord SomeMember() {
  MemberRecord record;
  record.incarnation = "0123456789abcdef";
  record.host = "node-7 \"quoted\" \xc3\xa4";
  record.address = "10.0.0.7";
  record.order = 5;
  record.role = "a role of words";
  record.state = MemberState::kLeaving;
  record.reason = "SIGTERM";
  record.deadline_ms = 30000;
  record.kind = JobKind::kInPlace;
  record.fingerprint = "torch 2.11.0";
  record.epoch = {7, "cafe", 3};
  record.outside = 6;
  record.deaths = 2;
  record.unfit = "step 3, lane 1";
  record.seats = {{"w1", SeatState::kRunning, 7, 3, {120, 2}, true, ""},
                  {"w2", SeatState::kDead, 6, -1, {}, false, "killed by signal 9 (SIGKILL)"}};
  return record;
}

EpochRecord SomeEpoch() {
  EpochRecord record;
  record.number = 7;
  record.id = "cafe";
  record.kind = JobKind::kInPlace;
  record.reason = "2 workers on 2 hosts";
  record.restarts = 1;
  record.store = {"10.0.0.1", 29400, "epoch/cafe/"};
  record.hosts = {{0, "a", 0, 0}, {4, "b", 1, 1}, {5, "c", 2, 0}};
  record.workers = {{0, 0, 0, "w1"}, {1, 4, 0, ""}};
  return record;
}

// One kind of record: a sample's text, and whether a text is taken for one.
struct Sample {
  std::string name;
  std::string text;
  std::function<Status(const std::string&)> parse;
};

template <class T>
Status Forget(const Result<T>& result) {
  return result.ok() ? Ok() : Status(result.error());
}

std::vector<Sample> Samples() {
  return {
      {"member", MemberText(SomeMember()),
       [](const auto& text) { return Forget(ParseMemberSlot("k", text)); }},
      {"tombstone", TombstoneText({Tombstone::Why::kRefused, "a", "other fingerprint"}),
       [](const auto& text) { return Forget(ParseMemberSlot("k", text)); }},
      {"epoch", EpochText(SomeEpoch()),
       [](const auto& text) { return Forget(ParseEpoch("k", text)); }},
      {"break", BreakText({7, "cafe", BreakCause::kHung, "a", "nothing moved", {1, 3}}),
       [](const auto& text) { return Forget(ParseBreak("k", text)); }},
      {"stop", StopText({"a", "SIGTERM", 30000}),
       [](const auto& text) { return Forget(ParseStop("k", text)); }},
      {"shunned", ShunnedText({{{"a", "node-7", "m7", "died"}}}),
       [](const auto& text) { return Forget(ParseShunned("k", text)); }},
      {"end", EndText({75, "stopped"}),
       [](const auto& text) { return Forget(ParseEnd("k", text)); }},
  };
}

TEST(Records, AreReadBackAsTheyWereWritten) {
  EXPECT_EQ(*ParseMemberSlot("k", MemberText(SomeMember()))->record, SomeMember());
  const Tombstone tombstone{Tombstone::Why::kExpired, "a", "silent"};
  EXPECT_EQ(*ParseMemberSlot("k", TombstoneText(tombstone))->tombstone, tombstone);
  EXPECT_EQ(*ParseEpoch("k", EpochText(SomeEpoch())), SomeEpoch());
  const BreakRecord broken{7, "cafe", BreakCause::kNotEntered, "a", "late", {1, 3}};
  EXPECT_EQ(*ParseBreak("k", BreakText(broken)), broken);
  const StopRecord stop{"a", "SIGTERM", 30000};
  EXPECT_EQ(*ParseStop("k", StopText(stop)), stop);
  const ShunnedRecord shunned{{{"a", "node-7", "m7", "died"}, {"b", "node-8", "", ""}}};
  EXPECT_EQ(*ParseShunned("k", ShunnedText(shunned)), shunned);
  const EndRecord end{77, "not saved"};
  EXPECT_EQ(*ParseEnd("k", EndText(end)), end);
}

TEST(Records, AnErrorNamesTheKey) {
  EXPECT_THAT(ParseEpoch("keel/j/g/epoch/7", "{").error().message,
              HasSubstr("keel/j/g/epoch/7"));
}

TEST(Records, CutShortTheyAreRefused) {
  for (const Sample& sample : Samples()) {
    ASSERT_TRUE(sample.parse(sample.text).ok()) << sample.name;
    for (size_t size = 0; size < sample.text.size(); ++size) {
      const Status status = sample.parse(sample.text.substr(0, size));
      ASSERT_FALSE(status.ok()) << sample.name << " cut at " << size;
      EXPECT_EQ(status.error().code, Code::kInvalid);
    }
  }
}

std::string WithVersion99(std::string text) {
  const std::string ours = "\"version\":" + std::to_string(kProtocolVersion);
  const size_t at = text.find(ours);
  EXPECT_NE(at, std::string::npos) << text;
  return text.replace(at, ours.size(), "\"version\":99");
}

TEST(Records, OfAnotherVersionTheyAreRefusedWithBothVersions) {
  for (const Sample& sample : Samples()) {
    if (sample.name == "tombstone") continue;
    const Status status = sample.parse(WithVersion99(sample.text));
    ASSERT_FALSE(status.ok()) << sample.name;
    EXPECT_THAT(status.error().message, HasSubstr("version is 99, ours is"));
  }
}

// What every version has in common, and nothing else of it.
TEST(Records, OfAnotherVersionItsWriterCanBeRead) {
  const auto other = ReadOtherRecord(WithVersion99(MemberText(SomeMember())));
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->version, 99);
  EXPECT_EQ(other->incarnation, SomeMember().incarnation);
  EXPECT_EQ(other->host, SomeMember().host);
  const auto bare = ReadOtherRecord(R"({"version":7,"new":[{}],"host":5})");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->version, 7);
  EXPECT_EQ(bare->incarnation, "");
  EXPECT_EQ(bare->host, "");
  for (const char* none : {"", "7", "[]", "{", R"({"incarnation":"a"})", R"({"version":"7"})"}) {
    EXPECT_FALSE(ReadOtherRecord(none).has_value()) << none;
  }
  EXPECT_FALSE(ReadOtherRecord(MemberText(SomeMember())).has_value());
}

// This form is read by releases to come and by those that are gone.
TEST(Records, ATombstoneOfAnotherVersionIsARefusal) {
  const char* const text =
      R"({"version":99,"gone":"anything","incarnation":"a","reason":"because","more":{}})";
  const auto slot = ParseMemberSlot("k", text);
  ASSERT_TRUE(slot.ok() && slot->tombstone);
  EXPECT_EQ(slot->tombstone->why, Tombstone::Why::kRefused);
  EXPECT_EQ(slot->tombstone->incarnation, "a");
  EXPECT_THAT(slot->tombstone->reason,
              HasSubstr("speaks protocol version 99, where this keelrun speaks version " +
                        std::to_string(kProtocolVersion) + ": run the same release"));
  EXPECT_THAT(slot->tombstone->reason, HasSubstr("because"));
  EXPECT_TRUE(ParseMemberSlot("k", R"({"version":99,"gone":"x"})")->tombstone.has_value());
  EXPECT_FALSE(ParseMemberSlot("k", R"({"version":99,"reason":"x"})").ok());
}

TEST(Records, OurTombstonesHaveTheFormOfAllVersions) {
  const std::string text = TombstoneText({Tombstone::Why::kRefused, "a", "because"});
  EXPECT_EQ(text, "{\"version\":" + std::to_string(kProtocolVersion) +
                      R"(,"gone":"refused","incarnation":"a","reason":"because"})");
}

TEST(Records, AShunnedHostIsForgottenOnlyWhereThereAreTooMany) {
  ShunnedRecord record;
  for (size_t i = 0; i <= kShunnedMax; ++i) {
    record.Add({"i" + std::to_string(i), "node", "m" + std::to_string(i), std::string(5000, '"')});
  }
  EXPECT_EQ(record.FindLauncher("i0"), nullptr);
  EXPECT_NE(record.FindLauncher("i1"), nullptr);
  EXPECT_TRUE(ParseShunned("k", ShunnedText(record)).ok()) << "too long to be read";
  EXPECT_EQ(record.FindMachine("m0"), nullptr);
  EXPECT_NE(record.FindMachine("m1"), nullptr);
  record.Add({"i", "node", "", "of nobody knows which machine"});
  EXPECT_EQ(record.FindMachine(""), nullptr);
}

TEST(Records, WhatChangesAllTheTimeIsNoNewsButAMove) {
  SeatRecord before;
  before.position = {4, 1};
  SeatRecord after = before;
  after.activity = {"computing, bucket 1", 2};
  EXPECT_TRUE(HasMoved(before, after));
  EXPECT_EQ(WithoutStanding(before), WithoutStanding(after));
  after = before;
  after.silent = true;
  EXPECT_FALSE(HasMoved(before, after)) << "nobody gets on by saying nothing";
  EXPECT_EQ(WithoutStanding(before), WithoutStanding(after));
  after.saved = true;
  EXPECT_NE(WithoutStanding(before), WithoutStanding(after));
}

TEST(Records, WithAMemberMoreTheyAreRefused) {
  for (const Sample& sample : Samples()) {
    EXPECT_FALSE(sample.parse("{\"extra\":1," + sample.text.substr(1)).ok()) << sample.name;
  }
}

TEST(Records, WithAnyByteChangedTheyAreReadOrRefusedButNothingBreaks) {
  Garbage garbage(5);
  for (const Sample& sample : Samples()) {
    for (int round = 0; round < Rounds(2000, 300); ++round) {
      std::string text = sample.text;
      text[garbage.Below(text.size())] = static_cast<char>(garbage.Below(256));
      const Status status = sample.parse(text);
      EXPECT_TRUE(status.ok() || status.error().code == Code::kInvalid) << garbage.Where(round);
    }
    for (int round = 0; round < Rounds(500, 100); ++round) {
      EXPECT_FALSE(sample.parse(garbage.Bytes(300)).ok()) << garbage.Where(round);
    }
  }
}

TEST(Records, TooLargeTheyAreRefused) {
  MemberRecord record = SomeMember();
  record.fingerprint.assign(kRecordBytesMax + 3 * kSeatBytesMax, 'x');   // nobody cuts it
  EXPECT_THAT(ParseMemberSlot("k", MemberText(record)).error().message, HasSubstr("2 seats"));
  // The same bytes are fine where there are seats enough.
  record.seats.resize(100);
  EXPECT_TRUE(ParseMemberSlot("k", MemberText(record)).ok());
}

// The texts that need the most room in JSON: bytes that are escaped, or that are no text at all.
std::vector<std::string> LongTexts(size_t bytes) {
  std::string umlauts = "x";
  while (umlauts.size() < bytes) umlauts += "\xc3\xa4";
  umlauts.resize(bytes);
  return {std::string(bytes, 'x'),    std::string(bytes, '"'),    std::string(bytes, '\x01'),
          std::string(bytes, '\0'),   std::string(bytes, '\xff'), std::string(bytes, '\x80'),
          std::move(umlauts)};
}

// A member of so many seats, in which all is as long as it can be.
MemberRecord LargestMember(size_t seats, const std::string& filler) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::string name(256, '\x01');
  MemberRecord record = SomeMember();
  record.host = name;
  record.address = name;
  record.order = record.deadline_ms = record.outside = record.deaths = kLeast;
  record.role = filler.substr(0, 4096);
  record.fingerprint = filler.substr(0, 4096);
  record.reason = filler;
  const int least = std::numeric_limits<int>::min();
  record.seats.assign(seats, {std::string(32, 'w'), SeatState::kStopping, kLeast, least,
                              {kLeast, least}, false, filler});
  return record;
}

TEST(Records, WhatIsWrittenAlwaysFitsWhatIsRead) {
  for (const size_t seats : {0, 1, 2, 100}) {
    for (const std::string& filler : LongTexts(60'000)) {
      const std::string text = MemberText(LargestMember(seats, filler));
      EXPECT_LE(text.size(), kRecordBytesMax + seats * kSeatBytesMax);
      const auto read = ParseMemberSlot("k", text);
      ASSERT_TRUE(read.ok()) << seats << " seats: " << read.error().message;
      EXPECT_FALSE(read->record->reason.empty());
    }
  }
  for (const std::string& filler : LongTexts(200'000)) {
    EXPECT_TRUE(ParseMemberSlot("k", TombstoneText({Tombstone::Why::kRefused, "a", filler})).ok());
    EpochRecord epoch = SomeEpoch();
    epoch.reason = filler;
    EXPECT_TRUE(ParseEpoch("k", EpochText(epoch)).ok());
    EXPECT_TRUE(ParseStop("k", StopText({"a", filler, 1})).ok());
    EXPECT_TRUE(ParseEnd("k", EndText({1, filler})).ok());
    BreakRecord broken{7, "cafe", BreakCause::kHung, "a", filler, {}};
    for (int64_t rank = 0; rank < 65536; ++rank) broken.ranks.push_back(rank);
    EXPECT_TRUE(ParseBreak("k", BreakText(broken)).ok());
  }
}

// As many workers as one host can have, each of which ended with a long goodbye.
TEST(Records, TheLargestHostFits) {
  const size_t seats = Rounds(1 << 16, 1 << 12);
  const std::string text = MemberText(LargestMember(seats, std::string(4200, '\x1f')));
  const auto read = ParseMemberSlot("k", text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->record->seats.size(), seats);
}

// etcd takes 1.5 MiB in one request, as base64 and with what is around it.
TEST(EpochRecord, OfAThousandHostsOfEightStaysFarBelowWhatEtcdTakes) {
  EpochRecord epoch = SomeEpoch();
  epoch.reason.assign(kReasonBytesMax, 'x');
  epoch.hosts.clear();
  epoch.workers.clear();
  constexpr int kHosts = 1000, kWorkers = 8;
  for (int host = 0; host < kHosts; ++host) {
    const int64_t slot = 1'000'000 + host;   // after months of spot machines
    const std::string name = "0123456789ab" + std::to_string(1000 + host);
    epoch.hosts.push_back({slot, name, host, host, 1'000'000});
    for (int index = 0; index < kWorkers; ++index) {
      epoch.workers.push_back({host * kWorkers + index, slot, index, name});
    }
  }
  const std::string text = EpochText(epoch);
  EXPECT_EQ(*ParseEpoch("k", text), epoch);
  EXPECT_LT(text.size(), size_t{512} << 10);
  RecordProperty("bytes", static_cast<int>(text.size()));
}

TEST(Records, WhatIsCutKeepsItsBeginningAndWholeCharacters) {
  MemberRecord record = SomeMember();
  record.reason.assign(kReasonBytesMax, 'x');
  record.seats[0].ended.assign(kEndedBytesMax, 'x');
  EXPECT_EQ(*ParseMemberSlot("k", MemberText(record))->record, record) << "it just fits";
  const std::string umlauts = LongTexts(3 * kReasonBytesMax).back();
  record.reason = umlauts;
  const MemberRecord read = *ParseMemberSlot("k", MemberText(record))->record;
  EXPECT_GE(read.reason.size(), kReasonBytesMax - 1);
  EXPECT_LE(read.reason.size(), kReasonBytesMax);
  EXPECT_EQ(read.reason, umlauts.substr(0, read.reason.size()));
}

TEST(Records, DeepNestingIsRefused) {
  EXPECT_FALSE(ParseEnd("k", std::string(100'000, '[')).ok());
  EXPECT_FALSE(ParseEnd("k", "{\"version\":1,\"code\":" + std::string(50'000, '[')).ok());
}

TEST(EpochRecord, ListsOfAnotherFormAreRefused) {
  const std::string text = EpochText(SomeEpoch());
  for (const char* list : {"hosts", "workers"}) {
    const size_t at = text.find(std::string("\"") + list + "\":\"") + strlen(list) + 4;
    ASSERT_EQ(text[at - 1], '"');
    for (const char* more : {"1 ", "-1 2 3 4 5 6 ", "99999999999999999999 2 3 1 2 3 ",
                             "x 1 2 y 1 2 "}) {
      const std::string wrong = text.substr(0, at) + more + text.substr(at);
      EXPECT_THAT(ParseEpoch("k", wrong).error().message, HasSubstr(list)) << wrong;
    }
  }
}

TEST(ParseCount, TakesDecimalNumbersOnly) {
  EXPECT_EQ(*ParseCount("k", "0"), 0);
  EXPECT_EQ(*ParseCount("k", "9223372036854775807"), INT64_MAX);
  for (const char* text : {"", " 1", "1 ", "0x1", "1.5", "9223372036854775808", "one", "+1"}) {
    EXPECT_FALSE(ParseCount("k", text).ok()) << text;
  }
}

TEST(ParseJobKind, TakesItsNamesOnly) {
  for (const JobKind kind : {JobKind::kForeign, JobKind::kInPlace}) {
    EXPECT_EQ(*ParseJobKind("k", JobKindName(kind)), kind);
  }
  EXPECT_FALSE(ParseJobKind("k", "").ok());
  EXPECT_FALSE(ParseJobKind("k", "In-Place").ok());
}

}  // namespace
}  // namespace keel
