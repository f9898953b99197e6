// The bytes of the board's records, and what is said of texts that are none: whoever changes one of
// them raises the protocol's version.
#include <gtest/gtest.h>

#include "elastic/protocol/records.h"
#include "tests/support/json_faults.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

MemberRecord SomeMember() {
  MemberRecord record;
  record.incarnation = "0123456789abcdef";
  record.host = "node-7 \"quoted\" \xc3\xa4\xff\n";
  record.address = "10.0.0.7";
  record.machine = "m";
  record.order = 5;
  record.role = "a role of words";
  record.state = MemberState::kLeaving;
  record.reason = "SIGTERM";
  record.deadline_ms = 30000;
  record.refused = true;
  record.forgiven = true;
  record.unfit = "lane 3";
  record.health = "good";
  record.kind = JobKind::kInPlace;
  record.fingerprint = "torch 2.11.0";
  record.epoch = {7, "cafe", 3, "a", 4, 1, 2};
  record.outside = 6;
  record.deaths = 2;
  record.incidents = 1;
  record.blame = {1, 2, 3, 4, 5, {6, 7, 8}};
  record.finished = 7;
  record.finished_id = "cafe";
  SeatRecord seat{"w1", SeatState::kRunning, 7, 3, {120, 2, 9}, true, ""};
  seat.activity = {"computing, lane 3", 4};
  seat.silent = true;
  record.peer = "10.0.0.7:29400";
  record.seen = {"e6", {"cafe", "beef"}, "cafe", "e6",
                 LostCoordinator{"a", "cafe", 6, 1500ms, true}};
  record.seats = {seat, {"w2", SeatState::kDead, 6, -1, {}, false, "killed by signal 9"}};
  record.seats[1].lacks = true;
  return record;
}

EpochRecord SomeEpoch() {
  EpochRecord record;
  record.number = 7;
  record.id = "cafe";
  record.kind = JobKind::kInPlace;
  record.reason = "2 workers on 2 hosts";
  record.coordinator = "a";
  record.restarts = 4;
  record.restarts_recent = 1;
  record.inexact_allowed = true;
  record.store = {"10.0.0.1", 29400, "epoch/cafe/"};
  record.hosts = {{0, "a", 0, 0, 2}, {4, "b", 1, 1}, {5, "c", 2, 0}};
  record.workers = {{0, 0, 0, "w1"}, {1, 4, 0, ""}};
  return record;
}

const Tombstone kTombstone{Tombstone::Why::kRefused, "a", "other fingerprint"};
const BreakRecord kBreak{7, "cafe", BreakCause::kHung, "a", "nothing moved", {1, 3}};
const StopRecord kStop{"a", "SIGTERM", 30000};
const EndRecord kEnd{75, "stopped"};
const ShunnedRecord kShunned{{{"a", "node-7", "m", "lane 3", 7, 2}}};

// What is said of it, without the key that all begin with.
template <class T>
std::string SaidOf(const Result<T>& result) {
  if (result.ok()) return "";
  const std::string start = "store key 'k': ";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_EQ(result.error().message.substr(0, start.size()), start);
  return result.error().message.substr(start.size());
}

std::string SaidOfMember(const std::string& text) { return SaidOf(ParseMemberSlot("k", text)); }
std::string SaidOfEpoch(const std::string& text) { return SaidOf(ParseEpoch("k", text)); }
std::string SaidOfBreak(const std::string& text) { return SaidOf(ParseBreak("k", text)); }
std::string SaidOfStop(const std::string& text) { return SaidOf(ParseStop("k", text)); }
std::string SaidOfEnd(const std::string& text) { return SaidOf(ParseEnd("k", text)); }

TEST(RecordsWire, AMember) {
  EXPECT_EQ(MemberText(SomeMember()),
            R"({"version":3,"incarnation":"0123456789abcdef","host":"node-7 \"quoted\" ä�\n",)"
            R"("address":"10.0.0.7","machine":"m","peer":"10.0.0.7:29400",)"
            R"("order":5,"role":"a role of words","state":"leaving","rea)"
            R"(son":"SIGTERM","deadline_ms":30000,"refused":true,"forgiven":true,"unfit":"lane 3",)"
            R"("health":"good","kind":"in-place","fingerpri)"
            R"(nt":"torch 2.11.0","epoch":{"number":7,"id":"cafe","hosts":3,"keeper":"a","res)"
            R"(tarts":4,"restarts_recent":1,"deaths":2},)"
            R"("seen":{"met":"e6","tried":"cafe beef","linked":"cafe",)"
            R"("shared":"e6","lost":{"who":"a","inside":"cafe","outside":6,)"
            R"("beat_age_ms":1500,"refused":true}},)"
            R"("outside":6,"deaths":2,"incidents":1,)"
            R"("blame":{"exited":1,"signalled":2,"ended":3,"lost_device":4,"not_started":5,)"
            R"("rechecks":6,"differences":7,"slow_steps":8},"finished":7,)"
            R"("finished_id":"cafe","seats":[{"wor)"
            R"(ker":"w1","state":"running","epoch":7,"rank":3,"step":120)"
            R"(,"phase":2,"tick":9,"place":"computing, lane 3","waits_for":4,"silent":true,"s)"
            R"(aved":true,"ended":""},{"worker":"w2","state":"dead","epoch":6,"rank":-1,"step)"
            R"(":-1,"phase":0,"tick":0,"place":"","waits_for":-3,"silent":false,"saved":false)"
            R"(,"ended":"killed by signal 9","lacks":true}]})");
  EXPECT_EQ(MemberText({}),
            R"({"version":3,"incarnation":"","host":"","address":"","machine":"",)"
            R"("peer":"","order":0,"ro)"
            R"(le":"","state":"member","reason":"","deadline_ms":0,"refused":false,)"
            R"("forgiven":false,"unfit":"","health":"","kind":")"
            R"(foreign","fingerprint":"","epoch":{"number":0,"id":"","hosts":0,"keeper":"",)"
            R"("restarts":0,"restarts_recent":0,"deaths":0},"seen":{"met":"","tried":"",)"
            R"("linked":"","shared":"","lost":null},"outside":0,"deaths":0,"incidents":0,)"
            R"("blame":{"exited":0,"signalled":0,"ended":0,"lost_device":0,"not_started":0,)"
            R"("rechecks":0,"differences":0,"slow_steps":0},)"
            R"("finished":0,)"
            R"("finished_id":"","seats":[]})");
}

TEST(RecordsWire, ATombstone) {
  EXPECT_EQ(TombstoneText(kTombstone),
            R"({"version":3,"gone":"refused","incarnation":"a","reason":"other fingerprint"})");
  EXPECT_EQ(TombstoneText({}),
            R"({"version":3,"gone":"expired","incarnation":"","reason":""})");
}

TEST(RecordsWire, AnEpoch) {
  EXPECT_EQ(EpochText(SomeEpoch()),
            R"({"version":3,"number":7,"id":"cafe","kind":"in-place","reason":"2 workers on 2)"
            R"( hosts","coordinator":"a","restarts":4,"restarts_recent":1,"inexact_allowed":t)"
            R"(rue,"by_lease":false,)"
            R"("store":{"address":"10.0.0.1","port":29400,"prefix":"epoch/cafe/"},"hosts")"
            R"(:"0 a 0 2 4 b 1 0 5 c 0 0","workers":"0 0 w1 4 0 -"})");
  EXPECT_EQ(EpochText({}),
            R"({"version":3,"number":0,"id":"","kind":"foreign","reason":"","coordinator":"",)"
            R"("restarts":0,"restarts_recent":0,"inexact_allowed":false,"by_lease":false,)"
            R"("store":{"address":"")"
            R"(,"port":0,"prefix":""},"hosts":"","workers":""})");
}

// Only where a lease knows earlier runs is it another one than 1.
TEST(RecordsWire, TheFirstEpochOfARun) {
  EpochRecord epoch = SomeEpoch();
  epoch.first = 5;
  const std::string text = EpochText(epoch);
  EXPECT_EQ(text.substr(0, 45), R"({"version":3,"number":7,"first":5,"id":"cafe")");
  EXPECT_EQ(*ParseEpoch("k", text), epoch);
  EXPECT_EQ(ToldBy("a", epoch).first, 5);
  EXPECT_EQ(ToldBy("a", SomeEpoch()).first, 1);
  MemberRecord member = SomeMember();
  member.epoch.first = 5;
  const std::string told = MemberText(member);
  EXPECT_NE(told.find(R"("epoch":{"number":7,"first":5,"id":)"), std::string::npos) << told;
  EXPECT_EQ(ParseMemberSlot("k", told)->record->epoch, member.epoch);
}

TEST(RecordsWire, ABreakAStopAndAnEnd) {
  EXPECT_EQ(BreakText(kBreak),
            R"({"version":3,"epoch":7,"id":"cafe","cause":"hung","by":"a","reason":"nothing m)"
            R"(oved","ranks":[1,3]})");
  EXPECT_EQ(BreakText({}),
            R"({"version":3,"epoch":0,"id":"","cause":"died","by":"","reason":"","ranks":[]})");
  EXPECT_EQ(StopText(kStop),
            R"({"version":3,"by":"a","reason":"SIGTERM","deadline_ms":30000})");
  EXPECT_EQ(StopText({}),
            R"({"version":3,"by":"","reason":"","deadline_ms":0})");
  EXPECT_EQ(EndText(kEnd),
            R"({"version":3,"code":75,"reason":"stopped"})");
  EXPECT_EQ(ShunnedText(kShunned),
            R"({"version":3,"hosts":[{"incarnation":"a","host":"node-7",)"
            R"("machine":"m","reason":"lane 3","epoch":7,"deaths":2}]})");
  EXPECT_EQ(ShunnedText({}), R"({"version":3,"hosts":[]})");
  EXPECT_EQ(EndText({}),
            R"({"version":3,"code":0,"reason":""})");
}

TEST(RecordsWire, EveryWord) {
  std::string words;
  for (int state = 0; state <= static_cast<int>(SeatState::kDead); ++state) {
    words += std::string(SeatStateName(static_cast<SeatState>(state))) + " ";
  }
  for (int state = 0; state <= static_cast<int>(MemberState::kLeft); ++state) {
    words += std::string(MemberStateName(static_cast<MemberState>(state))) + " ";
  }
  for (int cause = 0; cause <= static_cast<int>(BreakCause::kLeaseLost); ++cause) {
    words += std::string(BreakCauseName(static_cast<BreakCause>(cause))) + " ";
  }
  words += std::string(JobKindName(JobKind::kForeign)) + " ";
  words += std::string(JobKindName(JobKind::kInPlace));
  EXPECT_EQ(words,
            R"(empty starting ready running parked stopping finished left dead member leaving)"
            R"( left died host-lost left hung reported not-parked joined not-entered lease-lost)"
            R"( foreign )"
            R"(in-place)");
}

TEST(RecordsWire, WhatIsTooLongIsCutWhereItIsWritten) {
  const auto tail_of = [](const std::string& reason) {
    const std::string text = EndText({1, reason});
    return std::to_string(text.size()) + " " + text.substr(text.size() - 20);
  };
  EXPECT_EQ(tail_of(std::string(9000, 'x')),
            R"(8226 xxxxxxxxxxxxxxxxxx"})");
  EXPECT_EQ(tail_of(std::string(9000, '\x01')),
            R"(8224 \u0001\u0001\u0001"})");
  EXPECT_EQ(tail_of(std::string(9000, '\xff')),
            R"(8224 ������"})");
  std::string umlauts = "x";
  while (umlauts.size() < 9001) umlauts += "\xc3\xa4";
  EXPECT_EQ(tail_of(umlauts),
            R"(8225 äääääääää"})");
  MemberRecord member;
  member.reason = umlauts;
  member.seats.resize(1);
  member.seats[0].activity.place = umlauts;
  member.seats[0].ended = umlauts;
  const MemberRecord read = *ParseMemberSlot("k", MemberText(member))->record;
  EXPECT_EQ(read.reason.size(), kReasonBytesMax - 1);
  EXPECT_EQ(read.seats[0].activity.place.size(), kPlaceBytesMax - 1);
  EXPECT_EQ(read.seats[0].ended.size(), kEndedBytesMax - 1);
}

constexpr const char* kMemberFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
incarnation: it has 25 members instead of 26; @: expected a string, found null
host: it has 25 members instead of 26; @: expected a string, found null
address: it has 25 members instead of 26; @: expected a string, found null
machine: it has 25 members instead of 26; @: expected a string, found null
peer: it has 25 members instead of 26; @: expected a string, found null
order: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
role: it has 25 members instead of 26; @: expected a string, found null
state: it has 25 members instead of 26; @: expected a string, found null
reason: it has 25 members instead of 26; @: expected a string, found null
deadline_ms: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
refused: it has 25 members instead of 26; @: expected true or false, found null
forgiven: it has 25 members instead of 26; @: expected true or false, found null
unfit: it has 25 members instead of 26; @: expected a string, found null
health: it has 25 members instead of 26; @: expected a string, found null
kind: it has 25 members instead of 26; @: expected a string, found null
fingerprint: it has 25 members instead of 26; @: expected a string, found null
epoch: it has 25 members instead of 26; @: expected an object, found null
seen: it has 25 members instead of 26; @: expected an object, found null
outside: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
deaths: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
incidents: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame: it has 25 members instead of 26; @: expected an object, found null
finished: it has 25 members instead of 26; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
finished_id: it has 25 members instead of 26; @: expected a string, found null
seats: it has 25 members instead of 26; @: expected an array, found null
epoch/number: it has 6 members instead of 7; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
epoch/id: it has 6 members instead of 7; @: expected a string, found null
epoch/hosts: it has 6 members instead of 7; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
epoch/keeper: it has 6 members instead of 7; @: expected a string, found null
epoch/restarts: it has 6 members instead of 7; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
epoch/restarts_recent: it has 6 members instead of 7; @: expected a whole number of 32 bit)"
    R"(s, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
epoch/deaths: it has 6 members instead of 7; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seen/met: it has 4 members instead of 5; @: expected a string, found null
seen/tried: it has 4 members instead of 5; @: expected a string, found null
seen/linked: it has 4 members instead of 5; @: expected a string, found null
seen/shared: it has 4 members instead of 5; @: expected a string, found null
seen/lost: it has 4 members instead of 5; taken
seen/lost/who: it has 4 members instead of 5; @: expected a string, found null
seen/lost/inside: it has 4 members instead of 5; @: expected a string, found null
seen/lost/outside: it has 4 members instead of 5; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seen/lost/beat_age_ms: it has 4 members instead of 5; @: expected a whole number, found null
  -9223372036854775808: 'beat_age_ms' is -9223372036854775808, expected 0 to 1099511627776
  9223372036854775807: 'beat_age_ms' is 9223372036854775807, expected 0 to 1099511627776
seen/lost/refused: it has 4 members instead of 5; @: expected true or false, found null
blame/exited: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/signalled: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/ended: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/lost_device: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/not_started: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/rechecks: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/differences: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
blame/slow_steps: it has 7 members instead of 8; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seats/0/worker: it has 11 members instead of 12; @: expected a string, found null
seats/0/state: it has 11 members instead of 12; @: expected a string, found null
seats/0/epoch: it has 11 members instead of 12; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seats/0/rank: it has 11 members instead of 12; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
seats/0/step: it has 11 members instead of 12; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seats/0/phase: it has 11 members instead of 12; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
seats/0/tick: it has 11 members instead of 12; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
seats/0/place: it has 11 members instead of 12; @: expected a string, found null
seats/0/waits_for: it has 11 members instead of 12; @: expected a whole number of 32 bits,)"
    R"( found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 9223372036854775807
seats/0/silent: it has 11 members instead of 12; @: expected true or false, found null
seats/0/saved: it has 11 members instead of 12; @: expected true or false, found null
seats/0/ended: it has 11 members instead of 12; @: expected a string, found null
one more in '': it has 27 members instead of 26
one more in '/epoch': it has 8 members instead of 7
one more in '/seen': it has 6 members instead of 5
one more in '/seen/lost': it has 6 members instead of 5
one more in '/blame': it has 9 members instead of 8
one more in '/seats/0': it has 13 members instead of 12
order in '': version incarnation host address machine peer order role state reason deadlin)"
    R"(e_ms refused forgiven unfit health kind fingerprint epoch seen outside deaths incidents )"
    R"(blame finished fin)"
    R"(ished_id seats
order in '/epoch': number id hosts keeper restarts restarts_recent deaths
order in '/seen': met tried linked shared -
order in '/seen/lost': who inside outside beat_age_ms refused
order in '/blame': exited signalled ended lost_device not_started rechecks differences )"
    R"(slow_steps
order in '/seats/0': worker state epoch rank step phase tick place waits_for silent saved ended
)";

TEST(RecordsWire, FaultsOfAMember) {
  EXPECT_EQ(JsonFaults(MemberText(SomeMember()), SaidOfMember), kMemberFaults);
}

constexpr const char* kTombstoneFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: taken
  9223372036854775807: taken
gone: it has 3 members instead of 26; @: expected a string, found null
incarnation: it has 3 members instead of 4; @: expected a string, found null
reason: it has 3 members instead of 4; @: expected a string, found null
one more in '': it has 5 members instead of 4
order in '': version gone incarnation reason
)";

TEST(RecordsWire, FaultsOfATombstone) {
  EXPECT_EQ(JsonFaults(TombstoneText(kTombstone), SaidOfMember), kTombstoneFaults);
}

constexpr const char* kEpochFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
number: it has 12 members instead of 13; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
id: it has 12 members instead of 13; @: expected a string, found null
kind: it has 12 members instead of 13; @: expected a string, found null
reason: it has 12 members instead of 13; @: expected a string, found null
coordinator: it has 12 members instead of 13; @: expected a string, found null
restarts: it has 12 members instead of 13; @: expected a whole number of 32 bits, found nu)"
    R"(ll
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
restarts_recent: it has 12 members instead of 13; @: expected a whole number of 32 bits, f)"
    R"(ound null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
inexact_allowed: it has 12 members instead of 13; @: expected true or false, found null
by_lease: it has 12 members instead of 13; @: expected true or false, found null
store: it has 12 members instead of 13; @: expected an object, found null
hosts: it has 12 members instead of 13; @: expected a string, found null
workers: it has 12 members instead of 13; @: expected a string, found null
store/address: it has 2 members instead of 3; @: expected a string, found null
store/port: it has 2 members instead of 3; @: expected a whole number of 32 bits, found nu)"
    R"(ll
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
store/prefix: it has 2 members instead of 3; @: expected a string, found null
one more in '': it has 14 members instead of 13
one more in '/store': it has 4 members instead of 3
order in '': version number id kind reason coordinator restarts restarts_recent inexact_al)"
    R"(lowed by_lease store hosts workers
order in '/store': address port prefix
)";

TEST(RecordsWire, FaultsOfAnEpoch) {
  EXPECT_EQ(JsonFaults(EpochText(SomeEpoch()), SaidOfEpoch), kEpochFaults);
}

constexpr const char* kBreakFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
epoch: it has 6 members instead of 7; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
id: it has 6 members instead of 7; @: expected a string, found null
cause: it has 6 members instead of 7; @: expected a string, found null
by: it has 6 members instead of 7; @: expected a string, found null
reason: it has 6 members instead of 7; @: expected a string, found null
ranks: it has 6 members instead of 7; @: expected an array, found null
one more in '': it has 8 members instead of 7
order in '': version epoch id cause by reason ranks
)";

TEST(RecordsWire, FaultsOfABreak) {
  EXPECT_EQ(JsonFaults(BreakText(kBreak), SaidOfBreak), kBreakFaults);
}

constexpr const char* kStopFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
by: it has 3 members instead of 4; @: expected a string, found null
reason: it has 3 members instead of 4; @: expected a string, found null
deadline_ms: it has 3 members instead of 4; @: expected a whole number, found null
  -9223372036854775808: taken
  9223372036854775807: taken
one more in '': it has 5 members instead of 4
order in '': version by reason deadline_ms
)";

constexpr const char* kEndFaults =
    R"(version: @ is missing; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
code: it has 2 members instead of 3; @: expected a whole number of 32 bits, found null
  -9223372036854775808: @: expected a whole number of 32 bits, found the number -922337203)"
    R"(6854775808
  9223372036854775807: @: expected a whole number of 32 bits, found the number 92233720368)"
    R"(54775807
reason: it has 2 members instead of 3; @: expected a string, found null
one more in '': it has 4 members instead of 3
order in '': version code reason
)";

TEST(RecordsWire, FaultsOfAStopAndAnEnd) {
  EXPECT_EQ(JsonFaults(StopText(kStop), SaidOfStop), kStopFaults);
  EXPECT_EQ(JsonFaults(EndText(kEnd), SaidOfEnd), kEndFaults);
}

// Each with another member in place of one of its own, or something odd in it.
constexpr const char* kOtherFaults =
    R"(field 'host' is missing
field 'kind': unknown word 'In-Place'
field 'state': unknown word 'walking'
field 'silent' is missing
field 'hosts' is missing
it is no object
field 'rank': expected a whole number of 32 bits, found the number 2147483648
field 'phase': expected a whole number of 32 bits, found the number 2.0
field 'epoch': the number 9223372036854775808 is larger than 9223372036854775807
field 'gone': unknown word ''
"hosts" has '' where a number belongs
"hosts" has '-1' where a number belongs
"hosts" has '' where a number belongs
"hosts" lacks its last words

"workers" has '0x' where a number belongs
"workers" lacks its last words
field 'port' is missing
field 'cause': unknown word 'stuck'
field 'ranks': item 1: expected a whole number, found a string
field 'version': expected an object, found an array
field 'version': expected an object, found the number 7
field 'version' is missing
line 1, column 1: unexpected end of input; expected '[', '{', or a literal
line 1, column 22: found the key 'version' a second time in one object
its protocol version is 2, ours is 3: run the same release of Evenkeel on every host
field 'version': expected a whole number of 32 bits, found a string
)";

TEST(RecordsWire, OtherFaults) {
  const auto with = [](std::string text, const std::string& old, const std::string& put) {
    EXPECT_NE(text.find(old), std::string::npos) << text;
    return text.replace(text.find(old), old.size(), put);
  };
  std::string said;
  const auto member = [&](const std::string& old, const std::string& put) {
    said += SaidOfMember(with(MemberText(SomeMember()), old, put)) + "\n";
  };
  member("\"host\"", "\"hose\"");
  member("\"in-place\"", "\"In-Place\"");
  member("\"running\"", "\"walking\"");
  member("\"silent\"", "\"loud\"");
  member("\"hosts\"", "\"hoses\"");
  member("\"seats\":[{", "\"seats\":[7,{");
  member("\"rank\":3", "\"rank\":2147483648");
  member("\"phase\":2", "\"phase\":2.0");
  member("\"epoch\":7", "\"epoch\":9223372036854775808");
  said += SaidOfMember(with(TombstoneText(kTombstone), "\"refused\"", "\"\"")) + "\n";
  const auto epoch = [&](const std::string& old, const std::string& put) {
    said += SaidOfEpoch(with(EpochText(SomeEpoch()), old, put)) + "\n";
  };
  epoch("\"0 a 0 2 4", "\"0 a 0  2 4");
  epoch("\"0 a 0 2 4", "\"-1 a 0 2 4");
  epoch(" 5 c 0 0\"", " 5 c 0\"");
  epoch(" 5 c 0 0\"", " 5\"");
  epoch(" 5 c 0 0\"", " 5 c 0 0 \"");
  epoch(" 4 0 -\"", " 4 0x -\"");
  epoch(" 4 0 -\"", " 4 0\"");
  epoch("\"port\"", "\"part\"");
  said += SaidOfBreak(with(BreakText(kBreak), "\"hung\"", "\"stuck\"")) + "\n";
  said += SaidOfBreak(with(BreakText(kBreak), "[1,3]", "[1,\"3\"]")) + "\n";
  said += SaidOfEnd("[]") + "\n" + SaidOfEnd("7") + "\n" + SaidOfEnd("{}") + "\n";
  said += SaidOfEnd("") + "\n" + SaidOfEnd(R"({"version":3,"version":2})") + "\n";
  said += SaidOfEnd(R"({"version":2,"more":1})") + "\n" + SaidOfEnd(R"({"version":"2"})") + "\n";
  EXPECT_EQ(said, kOtherFaults);
}

// Readers of JSON do not look at the order of members.
TEST(RecordsWire, InAnotherOrderTheyAreTheSame) {
  const auto end = ParseEnd("k", R"( {"reason" : "stopped", "code":75,"version":3 } )");
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(*end, kEnd);
}

}  // namespace
}  // namespace keel
