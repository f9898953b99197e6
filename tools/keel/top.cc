// `keel top`: a job on the terminal, of what its status page tells.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/http_get.h"
#include "tools/keel/terminal_screen.h"
#include "tools/keel/top_view.h"

namespace keel {
namespace {

using Woke = TerminalScreen::Woke;

Result<HttpPlace> PlaceOf(const Options& options) {
  KEEL_TRY_ASSIGN(HttpPlace place, ReadHttpPlace(options.positionals()[0]));
  if (place.token.empty()) place.token = options.Text("token");
  if (place.token.find_first_of("\r\n") != std::string::npos) {
    return Error{Code::kInvalid, "the token has a line end in it"};
  }
  return place;
}

Error NotInTime(const HttpPlace& place, Duration limit) {
  return {Code::kTimeout, "no answer from " + place.where() + " within " + DurationText(limit)};
}

Result<Json> Ask(HttpPlace* asked, const SocketWait& wait) {
  KEEL_TRY_ASSIGN(const std::string body, HttpGet(asked, "/api", wait));
  const HttpPlace& place = *asked;
  auto json = ParseJson(body);
  if (!json.ok()) return json.error().Doing("reading what " + place.where() + " answers");
  if (!json->is_object() || !json->contains("members")) {
    return Error{Code::kCorrupt, place.where() + " answers, but not as a status page of keelrun"};
  }
  return json;
}

// The last moment of the next of so many parts of the time until the deadline.
TimePoint EndOfPart(TimePoint deadline, size_t parts, Clock& clock) {
  const TimePoint now = clock.Monotonic();
  return now + (deadline - now) / static_cast<int64_t>(parts);
}

Result<Json> AskOnce(HttpPlace* place, Duration limit, Clock& clock) {
  const TimePoint last = clock.Monotonic() + limit;
  KEEL_TRY(FindNumbers(place, limit));
  return Ask(place, [&](int socket, bool to_write, size_t parts) -> Status {
    const TimePoint deadline = EndOfPart(last, parts, clock);
    for (;;) {
      pollfd watched{socket, static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.Monotonic());
      const int ready = ::poll(&watched, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
      if (ready > 0) return Ok();
      if (ready == 0) return NotInTime(*place, limit);
      if (errno != EINTR) return Error{Code::kIo, "poll() fails"};
    }
  });
}

// Also where whoever started us had blocked it.
void EndBy(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  (void)std::signal(signal, SIG_DFL);
  (void)::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  (void)std::raise(signal);
}

// Asks and draws until somebody has enough of it.
class TopSession {
 public:
  TopSession(const World& world, const Options& options, HttpPlace place, Json first)
      : world_(world),
        place_(std::move(place)),
        pause_(options.Time("interval")),
        limit_(options.Time("limit")) {
    answers_.newest = std::move(first);
    answered_ = world.clock.Monotonic();
  }

  // The signal that ended it; 0: somebody typed q.
  Result<int> Run() {
    KEEL_TRY_ASSIGN(screen_, TerminalScreen::Open());
    const Status done = Loop();
    const int signal = screen_->ended_by();
    screen_.reset();   // the terminal is as before when a message, or the signal, comes
    if (!done.ok() && done.error().code != Code::kCancelled) return done.error();
    return signal;
  }

 private:
  // kCancelled: it is to end.
  Status Loop() {
    for (;;) {
      KEEL_TRY(Draw());
      const TimePoint next = world_.clock.Monotonic() + pause_;
      for (bool waits = true; waits;) {
        const Woke woke = screen_->Wait(-1, false, next, world_.clock);
        KEEL_TRY_ASSIGN(const bool asks, Heed(woke));
        waits = woke != Woke::kTime && !asks;
      }
      KEEL_TRY(AskAgain());
    }
  }

  // Whether the page shall be asked at once.
  Result<bool> Heed(Woke woke) {
    if (woke == Woke::kEnd) return Error{Code::kCancelled, "a signal"};
    bool asks = false;
    for (const char key : KeysOf(screen_->TakeKeys())) {
      const TopKey pressed = PressTopKey(key, &choice_);
      if (pressed == TopKey::kQuit) return Error{Code::kCancelled, "q"};
      asks = asks || pressed == TopKey::kRefresh;
    }
    if (woke == Woke::kKeys || woke == Woke::kRedraw) KEEL_TRY(Draw());
    return asks;
  }

  Status AskAgain() {
    const TimePoint last = world_.clock.Monotonic() + limit_;
    auto answer = Ask(&place_, [&](int socket, bool to_write, size_t parts) -> Status {
      const TimePoint deadline = EndOfPart(last, parts, world_.clock);
      for (;;) {
        const Woke woke = screen_->Wait(socket, to_write, deadline, world_.clock);
        if (woke == Woke::kSocket) return Ok();
        if (woke == Woke::kTime) return NotInTime(place_, limit_);
        const auto heeded = Heed(woke);
        if (!heeded.ok()) return heeded.error();
      }
    });
    if (!answer.ok() && answer.error().code == Code::kCancelled) return answer.error();
    const TimePoint now = world_.clock.Monotonic();
    if (!answer.ok()) {
      answers_.trouble = "this was " + DurationText(Rounded(now - answered_)) +
                         " ago; since then: " + answer.error().message + "; asking on";
      return Ok();
    }
    answered_ = now;
    answers_.trouble.clear();
    TakeAnswer(std::move(*answer), &answers_);
    return Ok();
  }

  static Duration Rounded(Duration time) { return std::chrono::ceil<std::chrono::seconds>(time); }

  Status Draw() {
    const TerminalScreen::Size size = screen_->size();
    const TopScreen screen{size.width, size.height};
    KeepInView(answers_, screen, &choice_);
    return screen_->Draw(TopLines(answers_, choice_, screen, world_.paint));
  }

  const World& world_;
  HttpPlace place_;   // with its numbers: the name service would keep keys waiting
  const Duration pause_;
  const Duration limit_;
  std::unique_ptr<TerminalScreen> screen_;
  TopAnswers answers_;
  TopChoice choice_;
  TimePoint answered_;
};

}  // namespace

OptionTable TopTable() {
  OptionTable table = CommandTable(
      "top",
      "Shows a job on the terminal while it runs: state, membership epoch, loss and speed, each "
      "worker with its step and what it does, the newest events. ADDRESS is where keelrun says "
      "that its status page is (keelrun --status=8090): 8090, node0:8090 or the whole URL. Keys: q "
      "quits, space asks now, s sorts by the next column, r the other way round, j and k scroll, h "
      "helps. When the page no longer answers, the screen says so, and goes on once it does. Where "
      "stdin or stdout is no terminal, the job is printed once.",
      "ADDRESS", "");
  table.Add(Option::Time("interval", "2s", "How long to wait between two looks").Short('d')
                .Range(std::chrono::milliseconds(100), std::chrono::hours(1)));
  table.Add(Option::Flag("once", false, "Print the job once, also on a terminal"));
  table.Add(Option::Text("token", "", "The secret of the status page. Other users can read a "
                                      "command line: the variable is better")
                .Env("KEELRUN_STATUS_TOKEN"));
  table.Add(Option::Time("limit", "5s", "How long an answer may take")
                .Range(std::chrono::milliseconds(10), std::chrono::minutes(10)));
  table.AddExample("keel top 8090", "A job on this machine");
  table.AddExample("ssh -fNL 8090:127.0.0.1:8090 node0; keel top 8090", "On another one");
  table.AddExample("keel top 8090 --once", "How it stands, as text");
  table.AddExample("keel top 8090 --json | jq '.members[].workers[].step'", "For a script");
  return table;
}

Status CheckTop(const Options& options) {
  const auto place = PlaceOf(options);
  return place.ok() ? Ok() : Status(place.error());
}

Result<Outcome> RunTop(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(HttpPlace place, PlaceOf(options));
  KEEL_TRY_ASSIGN(Json first, AskOnce(&place, options.Time("limit"), world.clock));
  const bool is_shown = world.prints_to_terminal && ::isatty(STDIN_FILENO) == 1 &&
                        !options.Flag("once") && !options.Flag("json");
  if (is_shown) {
    TopSession session(world, options, std::move(place), std::move(first));
    KEEL_TRY_ASSIGN(const int signal, session.Run());
    if (signal != 0) EndBy(signal);
    return Outcome{};
  }
  Outcome outcome;
  outcome.json = first;
  TopAnswers answers;
  answers.newest = std::move(first);
  for (const std::string& line : TopLines(answers, {}, {0, 0}, world.paint)) {
    outcome.text += line + "\n";
  }
  return outcome;
}

}  // namespace keel
