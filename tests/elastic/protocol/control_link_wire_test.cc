// The bytes of the control link's messages, and what is said of lines that are none: a worker may
// be linked with another release than its supervisor.
#include <gtest/gtest.h>

#include "base/text.h"
#include "elastic/protocol/control_link.h"
#include "tests/support/json_faults.h"

namespace keel {
namespace {

const FiguresMessage kFigures{120, 0.25, 118, 7552, {{"forward", 5'000'000'000}, {"vote", 0}}, 77};
const EpochMessage kEpoch{7, 1, 2, "10.0.0.7", 29400, "e7/", "worker 3 died", {"a/0", "b/0"},
                          true, "10.0.0.8"};

std::string Line(const WorkerMessage& message) { return *EncodeMessage(message); }
std::string Line(const SupervisorMessage& message) { return *EncodeMessage(message); }

// What is said of a line, without the words that all have.
template <class T>
std::string SaidOf(const Result<T>& result, const std::string& line) {
  if (result.ok()) return "";
  const std::string& message = result.error().message;
  const std::string start = "no message of the control link: ", end = ": " + Shown(line);
  EXPECT_EQ(result.error().code, Code::kCorrupt);
  EXPECT_EQ(message.substr(0, start.size()), start);
  EXPECT_EQ(message.substr(message.size() - end.size()), end);
  return message.substr(start.size(), message.size() - start.size() - end.size());
}
std::string SaidOfWorkers(const std::string& line) {
  return SaidOf(ParseWorkerMessage(line), line);
}
std::string SaidOfSupervisors(const std::string& line) {
  return SaidOf(ParseSupervisorMessage(line), line);
}

std::string FaultsOf(const WorkerMessage& message) {
  const std::string line = Line(message);
  return JsonFaults(line.substr(0, line.size() - 1), SaidOfWorkers);
}
std::string FaultsOf(const SupervisorMessage& message) {
  const std::string line = Line(message);
  return JsonFaults(line.substr(0, line.size() - 1), SaidOfSupervisors);
}

constexpr const char* kFromWorker =
    R"({"type":"hello","version":1,"fingerprint":"cpu avx2 \"quoted\" \n � V=8"}
{"type":"hello","version":9,"fingerprint":""}
{"type":"ready","step":-1}
{"type":"ready","step":12}
{"type":"parked","epoch":3,"step":119,"at_boundary":true}
{"type":"parked","epoch":0,"step":-1,"at_boundary":false}
{"type":"at","step":-1,"phase":0}
{"type":"at","step":120,"phase":2}
{"type":"at","step":120,"phase":2,"tick":7,"place":"computing, lane 3","waits_for":4}
{"type":"at","step":0,"phase":0,"place":"building the group","waits_for":-2}
{"type":"at","step":0,"phase":0,"waits_for":-1,"lacks":true}
{"type":"saved","step":100}
{"type":"leaving","step":121}
{"type":"figures","step":120,"loss":0.25,"steps":118,"samples":7552,"parts_ns":{"forward":)"
    R"(5000000000,"vote":0},"evaluating_ns":77}
{"type":"figures","step":0,"loss":null,"steps":0,"samples":0,"parts_ns":{},"evaluating_ns")"
    R"(:0}
{"type":"figures","step":1,"loss":1e+300,"steps":1,"samples":1,"parts_ns":{"a":2},"evaluat)"
    R"(ing_ns":0}
{"type":"bye","code":0,"message":""}
{"type":"bye","code":3,"message":"out of äpfel"}
)";

TEST(ControlLinkWire, FromTheWorker) {
  std::string lines;
  for (const WorkerMessage& message : std::vector<WorkerMessage>{
           HelloMessage{kControlVersion, "cpu avx2 \"quoted\" \n \xff V=8"},
           HelloMessage{9, ""}, ReadyMessage{}, ReadyMessage{12}, ParkedMessage{3, 119, true},
           ParkedMessage{}, AtMessage{}, AtMessage{{120, 2}},
           AtMessage{{120, 2, 7}, {"computing, lane 3", 4}},
           AtMessage{{0, 0}, {"building the group", Activity::kAnybody}},
           AtMessage{{0, 0}, {"", Activity::kNobody}, true}, SavedMessage{100},
           LeavingMessage{121},
           kFigures, FiguresMessage{}, FiguresMessage{1, 1e300, 1, 1, {{"a", 1}, {"a", 2}}, 0},
           ByeMessage{}, ByeMessage{3, "out of \xC3\xA4pfel"}}) {
    lines += Line(message);
  }
  EXPECT_EQ(lines, kFromWorker);
}

constexpr const char* kToWorker =
    R"({"type":"epoch","epoch":7,"rank":1,"world":2,"address":"10.0.0.7","port":29400,"prefix":"e)"
    R"(7/","reason":"worker 3 died","members":["a/0","b/0"],"inexact_allowed":true,"own_address":)"
    R"("10.0.0.8"}
{"type":"epoch","epoch":0,"rank":0,"world":1,"address":"","port":0,"prefix":"","reason":"")"
    R"(,"members":[],"inexact_allowed":false,"own_address":"127.0.0.1"}
{"type":"epoch","epoch":8,"rank":0,"world":1,"address":"::1","port":65535,"prefix":"","rea)"
    R"(son":"","members":[],"inexact_allowed":false,"own_address":""}
{"type":"break","epoch":0,"reason":""}
{"type":"break","epoch":7,"reason":"killed by signal 9"}
{"type":"join","epoch":7}
{"type":"stop","reason":"SIGTERM","deadline_ms":30000}
{"type":"stop","reason":"the host asks"}
{"type":"stop","reason":"","deadline_ms":0}
{"type":"save","reason":"SIGUSR2"}
{"type":"refused","reason":"fingerprint differs"}
{"type":"alive","limit_ms":60000}
{"type":"alive","limit_ms":1}
)";

TEST(ControlLinkWire, ToTheWorker) {
  std::string lines;
  for (const SupervisorMessage& message : std::vector<SupervisorMessage>{
           kEpoch, EpochMessage{}, EpochMessage{8, 0, 1, "::1", 65535, "", "", {}, false, ""},
           BreakMessage{}, BreakMessage{7, "killed by signal 9"}, JoinMessage{7},
           StopMessage{"SIGTERM", 30'000}, StopMessage{"the host asks", std::nullopt},
           StopMessage{"", 0}, SaveMessage{"SIGUSR2"}, RefusedMessage{"fingerprint differs"},
           AliveMessage{60000}, AliveMessage{}}) {
    lines += Line(message);
  }
  EXPECT_EQ(lines, kToWorker);
}

constexpr const char* kUnsent =
    R"(sing: a message of unknown type cannot be sent
hello: a 'hello' message: a fingerprint of 65536 bytes is longer than 4096, the most that )"
    R"(hosts tell each other
figures: a 'figures' message of 65632 bytes is too long for the control link, which takes )"
    R"(65536
a 'epoch' message of 65713 bytes is too long for the control link, which takes 65536
)";

TEST(ControlLinkWire, WhatCannotBeSent) {
  std::string said;
  const std::string huge(kControlLineMax, 'f');
  for (const WorkerMessage& message : std::vector<WorkerMessage>{
           UnknownMessage{"sing"}, HelloMessage{1, huge},
           FiguresMessage{1, 1, 1, 1, {{huge, 1}}, 1}}) {
    const auto line = EncodeMessage(message);
    ASSERT_FALSE(line.ok());
    EXPECT_EQ(line.error().code, Code::kInvalid);
    said += MessageType(message) + ": " + line.error().message + "\n";
  }
  EpochMessage epoch = kEpoch;
  epoch.prefix = huge;
  said += EncodeMessage(SupervisorMessage(epoch)).error().message + "\n";
  EXPECT_EQ(said, kUnsent);
}

constexpr const char* kHelloFaults =
    R"(type: @ is missing; @: expected a string, found null
version: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'version' is -9223372036854775808, expected 0 to 92233720368547758)"
    R"(07
  9223372036854775807: taken
fingerprint: @ is missing; @: expected a string, found null
one more in '': taken
order in '': type version fingerprint
)";

constexpr const char* kHello2Faults =
    R"(type: @ is missing; @: expected a string, found null
version: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'version' is -9223372036854775808, expected 0 to 92233720368547758)"
    R"(07
  9223372036854775807: taken
fingerprint: taken; taken
one more in '': taken
order in '': type version -
)";

TEST(ControlLinkWire, FaultsOfHello) {
  EXPECT_EQ(FaultsOf(WorkerMessage(HelloMessage{kControlVersion, "f"})), kHelloFaults);
  EXPECT_EQ(FaultsOf(WorkerMessage(HelloMessage{2, "f"})), kHello2Faults);
}

constexpr const char* kReadyFaults =
    R"(type: @ is missing; @: expected a string, found null
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected -1 to 9223372036854775807
  9223372036854775807: taken
one more in '': taken
order in '': type step
)";

constexpr const char* kParkedFaults =
    R"(type: @ is missing; @: expected a string, found null
epoch: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'epoch' is -9223372036854775808, expected 1 to 9223372036854775807
  9223372036854775807: taken
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected -1 to 9223372036854775807
  9223372036854775807: taken
at_boundary: @ is missing; @: expected true or false, found null
one more in '': taken
order in '': type epoch step at_boundary
)";

constexpr const char* kSavedFaults =
    R"(type: @ is missing; @: expected a string, found null
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected 0 to 9223372036854775807
  9223372036854775807: taken
one more in '': taken
order in '': type step
)";

constexpr const char* kLeavingFaults =
    R"(type: @ is missing; @: expected a string, found null
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected -1 to 9223372036854775807
  9223372036854775807: taken
one more in '': taken
order in '': type step
)";

TEST(ControlLinkWire, FaultsOfReadyParkedSavedAndLeaving) {
  EXPECT_EQ(FaultsOf(WorkerMessage(ReadyMessage{1})), kReadyFaults);
  EXPECT_EQ(FaultsOf(WorkerMessage(ParkedMessage{1, 1, true})), kParkedFaults);
  EXPECT_EQ(FaultsOf(WorkerMessage(SavedMessage{1})), kSavedFaults);
  EXPECT_EQ(FaultsOf(WorkerMessage(LeavingMessage{1})), kLeavingFaults);
}

constexpr const char* kAtFaults =
    R"(type: @ is missing; @: expected a string, found null
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected -1 to 9223372036854775807
  9223372036854775807: taken
phase: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'phase' is -9223372036854775808, expected 0 to 1073741824
  9223372036854775807: 'phase' is 9223372036854775807, expected 0 to 1073741824
tick: taken; @: expected a whole number, found null
  -9223372036854775808: 'tick' is -9223372036854775808, expected 0 to 9223372036854775807
  9223372036854775807: taken
place: taken; @: expected a string, found null
waits_for: taken; @: expected a whole number, found null
  -9223372036854775808: 'waits_for' is -9223372036854775808, expected -2 to 1048575
  9223372036854775807: 'waits_for' is 9223372036854775807, expected -2 to 1048575
lacks: taken; @: expected true or false, found null
one more in '': taken
order in '': type step phase tick place waits_for lacks
)";

TEST(ControlLinkWire, FaultsOfAt) {
  EXPECT_EQ(FaultsOf(WorkerMessage(AtMessage{{120, 2, 7}, {"computing", 4}, true})), kAtFaults);
}

constexpr const char* kFiguresFaults =
    R"(type: @ is missing; @: expected a string, found null
step: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'step' is -9223372036854775808, expected -1 to 9223372036854775807
  9223372036854775807: taken
loss: @ is missing; taken
steps: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'steps' is -9223372036854775808, expected 0 to 9223372036854775807
  9223372036854775807: taken
samples: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'samples' is -9223372036854775808, expected 0 to 92233720368547758)"
    R"(07
  9223372036854775807: taken
parts_ns: @ is missing; @: expected an object, found null
evaluating_ns: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'evaluating_ns' is -9223372036854775808, expected 0 to 31536000000)"
    R"(0000000
  9223372036854775807: 'evaluating_ns' is 9223372036854775807, expected 0 to 3153600000000)"
    R"(00000
parts_ns/forward: taken; @: expected a whole number, found null
  -9223372036854775808: 'forward' is -9223372036854775808, expected 0 to 31536000000000000)"
    R"(0
  9223372036854775807: 'forward' is 9223372036854775807, expected 0 to 315360000000000000
parts_ns/vote: taken; @: expected a whole number, found null
  -9223372036854775808: 'vote' is -9223372036854775808, expected 0 to 315360000000000000
  9223372036854775807: 'vote' is 9223372036854775807, expected 0 to 315360000000000000
one more in '': taken
one more in '/parts_ns': taken
order in '': type step steps steps samples parts_ns evaluating_ns
order in '/parts_ns': forward vote
)";

TEST(ControlLinkWire, FaultsOfFigures) {
  EXPECT_EQ(FaultsOf(WorkerMessage(kFigures)), kFiguresFaults);
}

constexpr const char* kByeFaults =
    R"(type: @ is missing; @: expected a string, found null
code: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'code' is -9223372036854775808, expected 0 to 255
  9223372036854775807: 'code' is 9223372036854775807, expected 0 to 255
message: @ is missing; @: expected a string, found null
one more in '': taken
order in '': type code message
)";

TEST(ControlLinkWire, FaultsOfBye) {
  EXPECT_EQ(FaultsOf(WorkerMessage(ByeMessage{0, ""})), kByeFaults);
}

constexpr const char* kEpochMessageFaults =
    R"(type: @ is missing; @: expected a string, found null
epoch: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'epoch' is -9223372036854775808, expected 1 to 9223372036854775807
  9223372036854775807: taken
rank: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'rank' is -9223372036854775808, expected 0 to 1
  9223372036854775807: 'rank' is 9223372036854775807, expected 0 to 1
world: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'world' is -9223372036854775808, expected 1 to 1048576
  9223372036854775807: 'world' is 9223372036854775807, expected 1 to 1048576
address: @ is missing; @: expected a string, found null
port: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'port' is -9223372036854775808, expected 0 to 65535
  9223372036854775807: 'port' is 9223372036854775807, expected 0 to 65535
prefix: @ is missing; @: expected a string, found null
reason: @ is missing; @: expected a string, found null
members: @ is missing; @: expected an array, found null
inexact_allowed: @ is missing; @: expected true or false, found null
own_address: taken; @: expected a string, found null
one more in '': taken
order in '': type epoch world world address port prefix reason members inexact_allowed own)"
    R"(_address
)";

TEST(ControlLinkWire, FaultsOfEpoch) {
  EXPECT_EQ(FaultsOf(SupervisorMessage(kEpoch)), kEpochMessageFaults);
}

constexpr const char* kBreakMessageFaults =
    R"(type: @ is missing; @: expected a string, found null
epoch: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'epoch' is -9223372036854775808, expected 1 to 9223372036854775807
  9223372036854775807: taken
reason: @ is missing; @: expected a string, found null
one more in '': taken
order in '': type epoch reason
)";

constexpr const char* kJoinFaults =
    R"(type: @ is missing; @: expected a string, found null
epoch: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'epoch' is -9223372036854775808, expected 1 to 9223372036854775807
  9223372036854775807: taken
one more in '': taken
order in '': type epoch
)";

constexpr const char* kStopMessageFaults =
    R"(type: @ is missing; @: expected a string, found null
reason: @ is missing; @: expected a string, found null
deadline_ms: taken; @: expected a whole number, found null
  -9223372036854775808: 'deadline_ms' is -9223372036854775808, expected 0 to 9223372036854)"
    R"(775807
  9223372036854775807: taken
one more in '': taken
order in '': type reason deadline_ms
)";

constexpr const char* kSaveFaults =
    R"(type: @ is missing; @: expected a string, found null
reason: @ is missing; @: expected a string, found null
one more in '': taken
order in '': type reason
)";

constexpr const char* kRefusedFaults =
    R"(type: @ is missing; @: expected a string, found null
reason: @ is missing; @: expected a string, found null
one more in '': taken
order in '': type reason
)";

constexpr const char* kAliveFaults =
    R"(type: @ is missing; @: expected a string, found null
limit_ms: @ is missing; @: expected a whole number, found null
  -9223372036854775808: 'limit_ms' is -9223372036854775808, expected 1 to 31536000000
  9223372036854775807: 'limit_ms' is 9223372036854775807, expected 1 to 31536000000
one more in '': taken
order in '': type limit_ms
)";

TEST(ControlLinkWire, FaultsOfBreakJoinStopSaveRefusedAndAlive) {
  EXPECT_EQ(FaultsOf(SupervisorMessage(BreakMessage{1, ""})), kBreakMessageFaults);
  EXPECT_EQ(FaultsOf(SupervisorMessage(JoinMessage{1})), kJoinFaults);
  EXPECT_EQ(FaultsOf(SupervisorMessage(StopMessage{"", 1})), kStopMessageFaults);
  EXPECT_EQ(FaultsOf(SupervisorMessage(SaveMessage{""})), kSaveFaults);
  EXPECT_EQ(FaultsOf(SupervisorMessage(RefusedMessage{""})), kRefusedFaults);
  EXPECT_EQ(FaultsOf(SupervisorMessage(AliveMessage{1})), kAliveFaults);
}

constexpr const char* kLinkOtherFaults =
    R"(line 1, column 1: unexpected end of input; expected '[', '{', or a literal
expected a JSON object
expected a JSON object
field 'type' is missing
field 'type': expected a string, found the number 1
field 'step': expected a whole number, found the number 1.0
'phase' is 1073741825, expected 0 to 1073741824
'waits_for' is -3, expected -2 to 1048575
'waits_for' is 1048576, expected -2 to 1048575
field 'fingerprint': expected a string, found the number 7
a name in 'parts_ns' is too long
'parts_ns' has too many members
'a' is -1, expected 0 to 315360000000000000
field 'a': expected a whole number, found the number 0.5
a name in 'parts_ns' is too long
'a' is 315360000000000001, expected 0 to 315360000000000000
'parts_ns' has too many members
'rank' is 2, expected 0 to 1
'rank' is -1, expected 0 to 1
'world' is 0, expected 1 to 1048576
'world' is 1048577, expected 1 to 1048576
'port' is 65536, expected 0 to 65535
'members' has 1 names for a world of 2
field 'members': item 1: expected a string, found the number 7
a fingerprint of 4097 bytes is longer than 4096, the most that hosts tell each other
longer than 65536 bytes
)";

TEST(ControlLinkWire, OtherFaults) {
  std::string said;
  for (const char* line :
       {"", "[]", "7", "{}", R"({"type":1})", R"({"type":"ready","step":1.0})",
        R"({"type":"at","step":1,"phase":1073741825})",
        R"({"type":"at","step":1,"phase":1,"waits_for":-3})",
        R"({"type":"at","step":1,"phase":1,"waits_for":1048576})",
        R"({"type":"hello","version":1,"fingerprint":7})"}) {
    said += SaidOfWorkers(line) + "\n";
  }
  const std::string long_name(kFigureNameMax + 1, 'n');
  std::string many = "\"n\":0";
  for (size_t i = 0; i < kFigurePartsMax; ++i) many += ",\"n" + std::to_string(i) + "\":0";
  for (const std::string& parts :
       {"\"" + long_name + "\":1", many, std::string("\"a\":-1"), std::string("\"a\":0.5"),
        "\"a\":-1,\"" + long_name + "\":1", std::string("\"a\":315360000000000001"),
        "\"a\":-1," + many}) {
    said += SaidOfWorkers(R"({"type":"figures","step":1,"loss":1,"steps":1,"samples":1,)"
                          R"("evaluating_ns":0,"parts_ns":{)" + parts + "}}") + "\n";
  }
  const std::string start = R"({"type":"epoch","epoch":1,"address":"a","prefix":"","reason":"",)"
                            R"("inexact_allowed":false,)";
  for (const char* rest : {R"("rank":2,"world":2,"port":1,"members":[]})",
                           R"("rank":-1,"world":2,"port":1,"members":[]})",
                           R"("rank":"x","world":0,"port":1,"members":[]})",
                           R"("rank":0,"world":1048577,"port":1,"members":[]})",
                           R"("rank":0,"world":2,"port":65536,"members":[]})",
                           R"("rank":0,"world":2,"port":1,"members":["a"]})",
                           R"("rank":0,"world":2,"port":1,"members":["a",7]})"}) {
    said += SaidOfSupervisors(start + rest) + "\n";
  }
  said += SaidOfWorkers(R"({"type":"hello","version":1,"fingerprint":")" +
                        std::string(kFingerprintBytesMax + 1, 'f') + "\"}") + "\n";
  said += SaidOfWorkers(std::string(kControlLineMax + 1, ' ')) + "\n";
  EXPECT_EQ(said, kLinkOtherFaults);
}

TEST(ControlLinkWire, WhatMayBeMissingIsReadAsNothing) {
  EXPECT_EQ(*ParseWorkerMessage(R"({"type":"at","step":1,"phase":2})"),
            WorkerMessage(AtMessage{{1, 2}}));
  EXPECT_EQ(*ParseWorkerMessage(R"({"type":"at","step":1,"phase":2,"tick":0,"place":"",)"
                                R"("waits_for":-1})"),
            WorkerMessage(AtMessage{{1, 2}, {"", Activity::kNobody}}));
  EXPECT_EQ(*ParseSupervisorMessage(R"({"type":"stop","reason":"r"})"),
            SupervisorMessage(StopMessage{"r", std::nullopt}));
  const auto epoch = ParseSupervisorMessage(
      R"({"type":"epoch","epoch":1,"rank":0,"world":1,"address":"a","port":1,"prefix":"p",)"
      R"("reason":"r","members":[],"inexact_allowed":true})");
  EXPECT_EQ(*epoch, SupervisorMessage(EpochMessage{1, 0, 1, "a", 1, "p", "r", {}, true,
                                                   "127.0.0.1"}));
  EpochMessage later{5, 0, 1, "a", 1, "p", "r", {}, true, "127.0.0.1"};
  later.first = 4;
  later.own_host = "node7";
  const std::string line = Line(SupervisorMessage(later));
  EXPECT_NE(line.find(R"("epoch":5,"first":4,"rank":0)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("127.0.0.1","own_host":"node7"})"), std::string::npos) << line;
  EXPECT_EQ(*ParseSupervisorMessage(line.substr(0, line.size() - 1)), SupervisorMessage(later));
  EXPECT_EQ(*ParseWorkerMessage(R"({"type":"hello","version":2,"fingerprint":7})"),
            WorkerMessage(HelloMessage{2, ""}));
}

}  // namespace
}  // namespace keel
