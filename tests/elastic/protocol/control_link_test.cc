// What passes the control link, and what closes it.
#include "elastic/protocol/control_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/line_framer.h"
#include "tests/harness/expect_ok.h"
#include "tests/support/garbage.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

std::vector<WorkerMessage> AllWorkerMessages() {
  return {HelloMessage{kControlVersion, "cpu avx2 \"quoted\" \n V=8"},
          ReadyMessage{kNoStep},
          ReadyMessage{12},
          ParkedMessage{3, 119, true},
          ParkedMessage{4, kNoStep, false},
          AtMessage{{120, 2}},
          AtMessage{{120, 2, 7}, {"computing, lane 3", 4}},
          AtMessage{{0, 0}, {"building the group", Activity::kAnybody}},
          SavedMessage{100},
          LeavingMessage{121},
          FiguresMessage{120, 0.25, 118, 7552, {{"forward", 5'000'000'000}, {"vote", 0}}, 77},
          FiguresMessage{3, std::nullopt, 3, 0, {}, 0},
          ByeMessage{3, "out of \xC3\xA4pfel"}};
}

std::vector<SupervisorMessage> AllSupervisorMessages() {
  return {EpochMessage{7, 1, 2, "10.0.0.7", 29400, "e7/", "worker 3 died", {"a/0", "b/0"}},
          EpochMessage{8, 0, 1, "::1", 65535, "", "", {}, true, "10.0.0.8"},
          BreakMessage{7, "killed by signal 9"},
          JoinMessage{7},
          StopMessage{"SIGTERM", 30'000},
          StopMessage{"the host asks", std::nullopt},
          SaveMessage{"SIGUSR2"},
          AliveMessage{60000},
          RefusedMessage{"fingerprint differs"}};
}

TEST(ControlLink, EveryMessageParsesBackAsItself) {
  for (const WorkerMessage& message : AllWorkerMessages()) {
    ASSERT_OK_AND_ASSIGN(std::string line, EncodeMessage(message));
    ASSERT_EQ(line.find('\n'), line.size() - 1) << line;
    line.pop_back();
    ASSERT_OK_AND_ASSIGN(const WorkerMessage back, ParseWorkerMessage(line));
    EXPECT_EQ(back, message) << line;
    EXPECT_THAT(line, HasSubstr("\"" + MessageType(message) + "\""));
  }
  for (const SupervisorMessage& message : AllSupervisorMessages()) {
    ASSERT_OK_AND_ASSIGN(std::string line, EncodeMessage(message));
    line.pop_back();
    ASSERT_OK_AND_ASSIGN(const SupervisorMessage back, ParseSupervisorMessage(line));
    EXPECT_EQ(back, message) << line;
  }
}

TEST(ControlLink, WhatIsNotKnownIsIgnoredOrNamed) {
  ASSERT_OK_AND_ASSIGN(const auto ready,
                       ParseWorkerMessage(R"({"type":"ready","step":4,"mood":["good"]})"));
  EXPECT_EQ(ready, WorkerMessage(ReadyMessage{4}));
  ASSERT_OK_AND_ASSIGN(const auto unknown, ParseWorkerMessage(R"({"type":"sing","song":1})"));
  EXPECT_EQ(unknown, WorkerMessage(UnknownMessage{"sing"}));
  // A supervisor's message is none of a worker's.
  ASSERT_OK_AND_ASSIGN(const auto other, ParseWorkerMessage(R"({"type":"join","epoch":1})"));
  EXPECT_EQ(other, WorkerMessage(UnknownMessage{"join"}));
}

TEST(ControlLink, AHelloOfAnotherVersionIsReadForItsVersionOnly) {
  ASSERT_OK_AND_ASSIGN(const auto hello, ParseWorkerMessage(R"({"type":"hello","version":2})"));
  EXPECT_EQ(hello, WorkerMessage(HelloMessage{2, ""}));
}

TEST(ControlLink, WhatIsKnownIsReadStrictly) {
  for (const char* line :
       {"", "{", "[]", "7", "null", "\"ready\"", "{}", R"({"type":1})", R"({"type":"ready"})",
        R"({"type":"ready","step":"4"})", R"({"type":"ready","step":4.0})",
        R"({"type":"ready","step":-2})", R"({"type":"ready","step":4,"step":5})",
        R"({"type":"parked","epoch":0,"step":1})", R"({"type":"hello","version":1})",
        R"({"type":"bye","code":256,"message":""})", R"({"type":"bye","code":-1,"message":""})",
        R"({"type":"ready","step":4} x)", R"({"type":"at","step":1,"phase":null})",
        R"({"type":"at","step":1,"phase":-1})",
        R"({"type":"at","step":1,"phase":1,"tick":-1})",
        R"({"type":"at","step":1,"phase":1,"waits_for":-9})",
        R"({"type":"parked","epoch":1,"step":1})"}) {
    const auto message = ParseWorkerMessage(line);
    ASSERT_FALSE(message.ok()) << line;
    EXPECT_EQ(message.error().code, Code::kCorrupt) << line;
  }
  std::string many = R"("p":1)";
  for (size_t i = 0; i < kFigurePartsMax; ++i) many += ",\"p" + std::to_string(i) + "\":1";
  const std::string figures = R"({"type":"figures","step":1,"steps":1,"samples":8,)";
  const std::string rest = R"(,"evaluating_ns":0})";
  ASSERT_OK(ParseWorkerMessage(figures + R"("loss":2,"parts_ns":{"p":1})" + rest));
  for (const std::string& members :
       {std::string(R"("parts_ns":{})"), std::string(R"("loss":"x","parts_ns":{})"),
        std::string(R"("loss":1.5,"parts_ns":[])"),
        std::string(R"("loss":1.5,"parts_ns":{"p":-1})"),
        std::string(R"("loss":1.5,"parts_ns":{"p":0.5})"),
        std::string(R"("loss":1.5,"parts_ns":{"p":9000000000000000000})"),
        R"("loss":1.5,"parts_ns":{)" + many + "}",
        R"("loss":1.5,"parts_ns":{")" + std::string(kFigureNameMax + 1, 'p') + R"(":1})"}) {
    EXPECT_FALSE(ParseWorkerMessage(figures + members + rest).ok()) << members;
  }
  const std::string start = R"({"type":"epoch","epoch":1,"address":"a","prefix":"","reason":"",)";
  for (const char* of : {R"("rank":2,"world":2,"port":1,"members":[]})",
                         R"("rank":-1,"world":2,"port":1,"members":[]})",
                         R"("rank":0,"world":0,"port":1,"members":[]})",
                         R"("rank":0,"world":2,"port":65536,"members":[]})",
                         R"("rank":0,"world":2,"port":1,"members":["a"]})",
                         R"("rank":0,"world":2,"port":1,"members":[1,2]})"}) {
    EXPECT_FALSE(ParseSupervisorMessage(start + of).ok()) << of;
  }
}

TEST(ControlLink, LongTextsAreCutAndManyMembersLeftOut) {
  const std::string umlauts = [] {
    std::string text;
    while (text.size() < 3 * kControlTextMax) text += "\xC3\xA4";
    return "x" + text;
  }();
  ASSERT_OK_AND_ASSIGN(std::string bye, EncodeMessage(WorkerMessage(ByeMessage{1, umlauts})));
  bye.pop_back();
  ASSERT_OK_AND_ASSIGN(const auto back, ParseWorkerMessage(bye));
  const std::string cut = std::get<ByeMessage>(back).message;
  EXPECT_LE(cut.size(), kControlTextMax);
  EXPECT_EQ(cut, umlauts.substr(0, cut.size()));
  EpochMessage epoch{1, 0, 4000, "10.0.0.1", 1, "p", std::string(99'999, '\x01'), {}};
  epoch.members.assign(4000, "some-host-with-a-name/12");
  ASSERT_OK_AND_ASSIGN(std::string line, EncodeMessage(SupervisorMessage(epoch)));
  EXPECT_LE(line.size(), kControlLineMax + 1);
  line.pop_back();
  ASSERT_OK_AND_ASSIGN(const auto far, ParseSupervisorMessage(line));
  EXPECT_TRUE(std::get<EpochMessage>(far).members.empty());
}

// Another writer than ours need not have cut them.
TEST(ControlLink, LongTextsAreCutWhoeverSentThem) {
  const std::string text(60'000, 'x');
  const std::string bye = R"({"type":"bye","code":1,"message":")" + text + "\"}";
  ASSERT_OK_AND_ASSIGN(const auto message, ParseWorkerMessage(bye));
  EXPECT_EQ(std::get<ByeMessage>(message).message, text.substr(0, kControlTextMax));
  const auto reason_of = [&](const std::string& start) {
    const auto parsed = ParseSupervisorMessage(start + R"(,"reason":")" + text + "\"}");
    EXPECT_TRUE(parsed.ok()) << start;
    std::string reason;
    if (!parsed.ok()) return reason;
    if (const auto* one = std::get_if<EpochMessage>(&*parsed)) reason = one->reason;
    if (const auto* one = std::get_if<BreakMessage>(&*parsed)) reason = one->reason;
    if (const auto* one = std::get_if<StopMessage>(&*parsed)) reason = one->reason;
    if (const auto* one = std::get_if<SaveMessage>(&*parsed)) reason = one->reason;
    if (const auto* one = std::get_if<RefusedMessage>(&*parsed)) reason = one->reason;
    return reason;
  };
  for (const char* start :
       {R"({"type":"epoch","epoch":1,"rank":0,"world":1,"address":"a","port":1,"prefix":"",)"
        R"("members":[],"inexact_allowed":false)",
        R"({"type":"break","epoch":1)", R"({"type":"stop")", R"({"type":"save")",
        R"({"type":"refused")"}) {
    EXPECT_EQ(reason_of(start), text.substr(0, kControlTextMax)) << start;
  }
}

// A cut one would be compared as if it were whole.
TEST(ControlLink, AFingerprintOfTheGreatestLengthPassesAndOneByteMoreIsRefused) {
  const std::string most(kFingerprintBytesMax, 'f');
  ASSERT_OK_AND_ASSIGN(std::string line, EncodeMessage(WorkerMessage(HelloMessage{1, most})));
  line.pop_back();
  ASSERT_OK_AND_ASSIGN(const auto back, ParseWorkerMessage(line));
  EXPECT_EQ(std::get<HelloMessage>(back).fingerprint, most);
  line.insert(line.find("ff"), "f");
  const auto more = ParseWorkerMessage(line);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::kCorrupt);
  EXPECT_THAT(more.error().message, HasSubstr("a fingerprint of 4097 bytes is longer than 4096"));
  const auto sent = EncodeMessage(WorkerMessage(HelloMessage{1, most + "f"}));
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, Code::kInvalid);
  EXPECT_THAT(sent.error().message, HasSubstr("4097 bytes"));
}

TEST(ControlLink, WhatDoesNotFitOrHasNoTypeIsRefusedBeforeItIsSent) {
  const std::string huge(kControlLineMax, 'f');
  EXPECT_FALSE(EncodeMessage(WorkerMessage(HelloMessage{1, huge})).ok());
  EXPECT_FALSE(EncodeMessage(WorkerMessage(UnknownMessage{"sing"})).ok());
}

TEST(ControlLink, GarbageIsAnErrorAndNothingElse) {
  Garbage garbage(20261121);
  std::vector<std::string> lines;
  for (const auto& message : AllWorkerMessages()) lines.push_back(*EncodeMessage(message));
  for (int round = 0; round < 20'000; ++round) {
    std::string line = garbage.Below(4) == 0 ? garbage.Bytes(200) : garbage.OneOf(lines);
    for (uint64_t flips = garbage.Below(4); flips > 0 && !line.empty(); --flips) {
      line[garbage.Below(line.size())] = static_cast<char>(garbage.Below(256));
    }
    const auto message = ParseWorkerMessage(line);
    if (message.ok()) continue;
    ASSERT_EQ(message.error().code, Code::kCorrupt) << garbage.Where(round);
    ASSERT_EQ(message.error().message.find('\n'), std::string::npos) << garbage.Where(round);
  }
}

TEST(LineFramer, GivesTheSameLinesWhereverTheBytesAreCut) {
  const std::string bytes = "one\n\nthree and more\nhalf";
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      LineFramer framer(100);
      EXPECT_OK(framer.Feed(bytes.substr(0, first)));
      EXPECT_OK(framer.Feed(bytes.substr(first, second - first)));
      EXPECT_OK(framer.Feed(bytes.substr(second)));
      EXPECT_EQ(framer.Next(), "one");
      EXPECT_EQ(framer.Next(), "");
      EXPECT_EQ(framer.Next(), "three and more");
      EXPECT_EQ(framer.Next(), std::nullopt);
      EXPECT_EQ(framer.partial_bytes(), 4u);
    }
  }
}

TEST(LineFramer, ALineOfTheGreatestLengthPassesAndOneByteMoreBreaksForGood) {
  LineFramer framer(8);
  EXPECT_OK(framer.Feed("12345678\n"));
  const Status fed = framer.Feed("fine\n123456789\nlost\n");
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().code, Code::kCorrupt);
  EXPECT_FALSE(framer.Feed("later\n").ok());
  EXPECT_EQ(framer.Next(), "12345678");
  EXPECT_EQ(framer.Next(), "fine");
  EXPECT_EQ(framer.Next(), std::nullopt);
}

}  // namespace
}  // namespace keel
