// Parts of `keel top`: keys, the lines of a screen, addresses and replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>

#include "store/listen_socket.h"
#include "tests/harness/expect_ok.h"
#include "tools/keel/http_get.h"
#include "tools/keel/text_table.h"
#include "tools/keel/top_view.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// --- what is shown ---

Json Worker(int local_rank, int rank, int step) {
  return {{"local_rank", local_rank}, {"rank", rank},        {"state", "running"},
          {"epoch", 2},               {"step", step},        {"place", "computing"},
          {"waits_for", nullptr},     {"silent", false},     {"ended", ""}};
}

// A job of two hosts with `workers` workers each, at a step.
Json Api(int step, double now_s, int workers = 1) {
  Json api = {{"job", "bert"}, {"state", "running"}, {"step", step}, {"started_s", 1000.0},
              {"now_s", now_s}, {"loss", 0.25}, {"samples_per_s", nullptr}, {"sees_all", true},
              {"epoch", {{"number", 2}, {"workers", 2 * workers}, {"hosts", 2}}},
              {"epochs_total", 2}, {"checkpoints_total", 0}, {"time_here", {{"goodput", 0.9}}},
              {"workers_here", Json::array({{{"local_rank", 0}, {"steps", step}, {"loss", 0.25},
                                             {"seconds_in", {{"data", step * 0.5}}}}})},
              {"members", Json::array()}, {"events", Json::array()}};
  for (const char* const host : {"b", "a"}) {
    Json member = {{"host", host}, {"here", host == std::string("b")}, {"state", "in"},
                   {"deaths", host == std::string("a") ? 3 : 0}, {"workers", Json::array()}};
    for (int i = 0; i < workers; ++i) {
      const int rank = host == std::string("b") ? i : workers + i;
      member["workers"].push_back(Worker(i, rank, step - rank));
    }
    api["members"].push_back(member);
  }
  api["events"].push_back({{"time_s", 1001.5}, {"kind", "death"}, {"text", "rank 1 \x1b[2J"}});
  return api;
}

std::string Screen(const TopAnswers& answers, const TopChoice& choice = {},
                   const TopScreen& screen = {100, 24}) {
  std::string text;
  for (const std::string& line : TopLines(answers, choice, screen, Paint())) text += line + "\n";
  return text;
}

TEST(TopView, ShowsTheJobItsWorkersAndWhatHappened) {
  TopAnswers answers;
  answers.newest = Api(40, 1010);
  const std::string text = Screen(answers);
  EXPECT_THAT(text, StartsWith("job bert  running  step 40  epoch 2: 2 workers on 2 hosts  "
                               "up 10 s\nloss 0.25  - samples/s  goodput here 0.9"));
  EXPECT_THAT(text, HasSubstr("   0  b         0  running      2    40  computing      500  0.25"));
  EXPECT_THAT(text, HasSubstr("   1  a         0  running      2    39  computing        -     -"));
  EXPECT_THAT(text, HasSubstr("00:16:41 death  rank 1 \\x1b[2J"));
  EXPECT_THAT(text, Not(HasSubstr("steps/s")));
}

TEST(TopView, TellsHowFastTheJobGoesBetweenTwoAnswers) {
  TopAnswers answers;
  answers.before = Api(20, 1005);
  answers.newest = Api(40, 1010);
  EXPECT_THAT(Screen(answers), HasSubstr("  4 steps/s  "));
}

TEST(TopView, SaysThatNobodyAnswers) {
  TopAnswers answers;
  answers.newest = Api(40, 1010);
  answers.trouble = "this was 5 s ago; since then: nobody answers";
  EXPECT_THAT(Screen(answers), HasSubstr("\nthis was 5 s ago; since then: nobody answers\n"));
}

TEST(TopView, ShowsWhateverIsAnswered) {
  for (const Json& api : {Json(), Json::object(), Json::array({1}), Json("text"),
                          Json{{"members", 3}, {"events", "x"}, {"epoch", 1}},
                          Json{{"step", 1e300}, {"now_s", 1e300}, {"started_s", -1e300},
                               {"epoch", {{"number", -1e300}, {"workers", -5}, {"hosts", 1e30}}},
                               {"events", Json::array({{{"time_s", 1e300}}})}},
                          Json{{"members", Json::array({1, Json::object()})},
                               {"workers_here", Json::array({"x"})},
                               {"events", Json::array({nullptr})}}}) {
    TopAnswers answers;
    answers.newest = api;
    EXPECT_THAT(Screen(answers), HasSubstr("RANK"));
  }
}

TEST(TopView, FitsEveryScreen) {
  TopAnswers answers;
  answers.newest = Api(40, 1010, 300);
  answers.trouble = "trouble";
  for (const size_t width : {1u, 20u, 80u, 200u}) {
    for (const size_t height : {1u, 2u, 5u, 10u, 24u, 50u}) {
      for (const bool shows_help : {false, true}) {
        TopChoice choice;
        choice.shows_help = shows_help;
        const auto lines = TopLines(answers, choice, {width, height}, Paint(true));
        EXPECT_EQ(lines.size(), height);
        for (const std::string& line : lines) {
          size_t columns = 0;
          for (size_t at = 0; at < line.size(); ++at) {
            if (line[at] == '\x1b') at = line.find('m', at);
            else ++columns;
          }
          EXPECT_LE(columns, width) << line;
        }
      }
    }
  }
}

TEST(TopView, ScrollsNoFurtherThanToTheLastWorker) {
  TopAnswers answers;
  answers.newest = Api(40, 1010, 300);
  TopChoice choice;
  choice.skipped = 100'000;
  const std::string text = Screen(answers, choice);
  EXPECT_THAT(text, AllOf(HasSubstr("RANK"), HasSubstr("\n 599  a"), Not(HasSubstr("\n   0  b"))));
}

// --- keys ---

std::string FirstRank(const TopChoice& choice) {
  TopAnswers answers;
  answers.newest = Api(40, 1010, 2);
  const std::string text = Screen(answers, choice);
  return text.substr(text.find("REMARK\n") + 7, 4);
}

TEST(TopView, KeysSortAndTurnRound) {
  TopChoice choice;
  EXPECT_EQ(FirstRank(choice), "   0");
  EXPECT_EQ(PressTopKey('r', &choice), TopKey::kChanged);
  EXPECT_EQ(FirstRank(choice), "   3");
  PressTopKey('r', &choice);
  PressTopKey('s', &choice);   // host
  EXPECT_EQ(FirstRank(choice), "   2");
  PressTopKey('<', &choice);
  PressTopKey('<', &choice);   // deaths
  EXPECT_EQ(choice.sort, TopSort::kDeaths);
  EXPECT_EQ(FirstRank(choice), "   2");
  PressTopKey('k', &choice);
  EXPECT_EQ(choice.skipped, 0u);
  EXPECT_EQ(PressTopKey('q', &choice), TopKey::kQuit);
  EXPECT_EQ(PressTopKey(' ', &choice), TopKey::kRefresh);
  EXPECT_EQ(PressTopKey('x', &choice), TopKey::kNone);
}

TEST(TopView, ArrowsAreKeysAndOtherSequencesAreNone) {
  EXPECT_EQ(KeysOf("\x1b[Bs\x1b[A\x1bOB"), "jskj");
  EXPECT_EQ(KeysOf("\x1b[15~\x1b[1;5Cq"), "q");
  EXPECT_EQ(KeysOf("\x1b"), "");
  EXPECT_EQ(KeysOf("\x1b[12"), "");
}

// --- addresses and replies ---

TEST(HttpPlace, IsReadInEveryFormThatPeopleHaveIt) {
  for (const char* const text : {"8090", ":8090", "127.0.0.1:8090", "http://127.0.0.1:8090/"}) {
    const auto place = ReadHttpPlace(text);
    ASSERT_OK(place);
    EXPECT_EQ(place->where(), "127.0.0.1:8090") << text;
    EXPECT_EQ(place->token, "");
  }
  EXPECT_EQ(ReadHttpPlace("[::1]:80")->where(), "[::1]:80");
  const auto with_token = ReadHttpPlace("http://node0:8090/?token=secret&x=1");
  EXPECT_EQ(with_token->host, "node0");
  EXPECT_EQ(with_token->token, "secret");
  for (const char* const wrong : {"", "node0", "node0:", "node0:0", "node0:70000", "a b:80",
                                  "https://node0/", "http://u@node0:80/"}) {
    EXPECT_FALSE(ReadHttpPlace(wrong).ok()) << wrong;
  }
}

TEST(HttpPlace, ATokenIsNotToldToWhoeverReadsTheMessage) {
  for (const char* const wrong : {"https://node0:8090/?token=secret", "node0/token=secret"}) {
    const auto place = ReadHttpPlace(wrong);
    ASSERT_FALSE(place.ok());
    EXPECT_THAT(place.error().message, AllOf(HasSubstr("node0"), Not(HasSubstr("secret"))));
  }
}

TEST(HttpGet, GoesOnWithTheNextAddressWhereOneIsSilent) {
  const auto server = ListenSocket::Listen("127.0.0.1", 0);
  ASSERT_OK(server);
  HttpPlace place{.host = "node0", .port = std::to_string(server->port())};
  place.numbers = {"127.0.0.2", "127.0.0.1"};
  std::vector<size_t> parts_of_time;
  const auto body = HttpGet(&place, "/api", [&](int socket, bool to_write, size_t parts) -> Status {
    parts_of_time.push_back(parts);
    if (parts_of_time.size() == 1) return Error{Code::kTimeout, "silent"};
    if (!to_write) return Error{Code::kCancelled, "enough"};
    pollfd watched{socket, POLLOUT, 0};
    return ::poll(&watched, 1, 10'000) == 1 ? Ok() : Status(Error{Code::kIo, "poll"});
  });
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, Code::kCancelled);
  EXPECT_EQ(parts_of_time, (std::vector<size_t>{2, 1, 1}));
  EXPECT_EQ(place.numbers, (std::vector<std::string>{"127.0.0.1", "127.0.0.2"}));
}

TEST(HttpGet, AsksNoNameService) {
  HttpPlace place{.host = "node0", .port = "80"};
  place.numbers = {"node0"};
  const auto body = HttpGet(&place, "/api", [](int, bool, size_t) { return Ok(); });
  EXPECT_EQ(body.error().message, "nobody answers at node0:80: 'node0' is no address");
}

TEST(HttpPlace, OnlyAGoodReplyHasABody) {
  EXPECT_EQ(*BodyOfReply("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}"), "{}");
  EXPECT_THAT(BodyOfReply("HTTP/1.1 401 Unauthorized\r\n\r\nno").error().message,
              HasSubstr("KEELRUN_STATUS_TOKEN"));
  EXPECT_THAT(BodyOfReply("HTTP/1.1 404 Not Found\r\n\r\nno\x1b").error().message,
              EndsWith("404 Not Found: no\\x1b"));
  for (const char* const wrong : {"", "SSH-2.0", "HTTP/1.1 200 OK\r\n", "HTTP/1.1\r\n\r\n"}) {
    EXPECT_FALSE(BodyOfReply(wrong).ok()) << wrong;
  }
}

// --- what is kept between two screens ---

TEST(TopView, ScrollingUpTakesBackWhatScrollingDownDid) {
  TopAnswers answers;
  answers.newest = Api(40, 1010, 300);
  const TopScreen screen{100, 24};
  TopChoice choice;
  KeepInView(answers, screen, &choice);
  for (int i = 0; i < 1000; ++i) PressTopKey('j', &choice);
  const std::string last = Screen(answers, choice, screen);
  EXPECT_THAT(last, HasSubstr("\n 599  a"));
  PressTopKey('k', &choice);
  const std::string above = Screen(answers, choice, screen);
  EXPECT_THAT(above, AllOf(HasSubstr("\n 598  a"), Not(HasSubstr("\n 599  a"))));
  PressTopKey('j', &choice);
  EXPECT_EQ(Screen(answers, choice, screen), last);
  // A line of trouble takes one of the table's; a taller window gives some back.
  answers.trouble = "nobody answers";
  KeepInView(answers, screen, &choice);
  PressTopKey('j', &choice);
  EXPECT_THAT(Screen(answers, choice, screen), HasSubstr("\n 599  a"));
  KeepInView(answers, {100, 2000}, &choice);
  EXPECT_EQ(choice.skipped, 0u);
  PressTopKey('j', &choice);
  EXPECT_EQ(choice.skipped, 0u);
}

// A worker that hangs after fast steps would look as one that was slow from the start.
TEST(TopView, AStepsTimeStaysWhileNoneIsMade) {
  TopAnswers answers;
  const auto take = [&](int steps, double seconds) {
    Json api = Api(steps, 1000 + seconds);
    api["workers_here"][0]["seconds_in"]["data"] = seconds;
    TakeAnswer(std::move(api), &answers);
    return Screen(answers);
  };
  EXPECT_THAT(take(10, 10), HasSubstr("  computing     1000  0.25")) << "since it began";
  EXPECT_THAT(take(20, 11), HasSubstr("  computing      100  0.25"));
  EXPECT_THAT(take(20, 11), HasSubstr("  computing      100  0.25"));
  EXPECT_THAT(take(20, 11), HasSubstr("  computing      100  0.25"));
  EXPECT_THAT(take(22, 12), HasSubstr("  computing      500  0.25"));
  EXPECT_THAT(take(0, 1), HasSubstr("  computing        -  0.25")) << "another one in its place";
  EXPECT_THAT(take(2, 4), HasSubstr("  computing     1500  0.25"));
  EXPECT_THAT(take(1, 3), HasSubstr("  computing     3000  0.25")) << "one more, since it began";
}

// --- tables ---

TEST(TextTable, AColumnIsAsWideAsItsCharacters) {
  TextTable table({"HOST", ">N", "END"});
  table.Add({"größer", "1", "x"});
  table.Add({"small", "ø", "x"});
  EXPECT_EQ(table.Text(), "HOST    N  END\ngrößer  1  x\nsmall   ø  x\n");
}

}  // namespace
}  // namespace keel
