// A worker in place without any group: it counts steps, and keeps its count over epochs.
// Arguments: a file, upon whose appearance its work is done; "deaf" if it shall ignore SIGTERM.
// SURVIVOR_FINGERPRINT and SURVIVOR_VERSION in the environment: what it says of itself.
// SURVIVOR_FIGURES: it tells figures with each step, whose loss is 1 / step and whose parts are all
// of the step's time, half of it called "<b>wait"; and every 50 steps that it has saved.
// SURVIVOR_TOGETHER: it takes a step when all others of the epoch have taken theirs, as groups do.
// It does not report to the supervisor while there is a file of that name with ".gate" behind, and
// hangs once there is one with ".hang.<its pid>" behind.
// Prints "epoch <E> rank <R> of <W> pid <P> count <C>", "broken <E> pid <P> count <C>",
// "rank <R> has counted to <C>" each 20 steps, "hangs pid <P>", "stopped at <C> pid <P>", "done".
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/environment.h"
#include "base/fd.h"
#include "elastic/worker_link.h"

namespace {

using namespace keel;

constexpr Duration kStepTime = std::chrono::milliseconds(5);

class Survivor {
 public:
  Survivor(WorkerLink& link, std::string done_file, HelloMessage hello, bool together)
      : link_(link),
        done_file_(std::move(done_file)),
        hello_(std::move(hello)),
        together_(together) {}

  int Run() {
    if (!link_.Send(hello_).ok()) return 1;
    if (!link_.Send(ReadyMessage{}).ok()) return 1;
    while (!over_) {
      const Duration wait = running_ ? kStepTime : std::chrono::seconds(60);
      const Result<SupervisorMessage> message = link_.Receive(RealClock().Monotonic() + wait);
      if (message.ok()) {
        std::visit([&](const auto& one) { On(one); }, *message);
      } else if (message.error().code != Code::kTimeout) {
        return 1;
      } else if (running_) {
        Step();
      }
    }
    return link_.Flush(RealClock().Monotonic() + std::chrono::seconds(10)).ok() ? 0 : 1;
  }

 private:
  void Step() {
    if (access((done_file_ + ".hang." + std::to_string(getpid())).c_str(), F_OK) == 0) Hang();
    if (!together_ || OthersAreHere()) {
      ++count_;
      ++steps_;
      (void)link_.Send(AtMessage{{count_, 0}});
      if (tells_figures_) TellFigures();
      if (together_) WritePlace();
      if (count_ % 20 == 0) {
        Say("rank " + std::to_string(rank_) + " has counted to " + std::to_string(count_));
      }
    }
    if (access(done_file_.c_str(), F_OK) != 0) return;
    Say("done");
    End(ByeMessage{0, "finished"});
  }

  void TellFigures() {
    ++figures_.steps;
    figures_.step = count_;
    figures_.loss = 1.0 / static_cast<double>(count_);
    figures_.samples += 64;
    const int64_t half = figures_.steps * kStepTime.count() / 2;
    figures_.parts = {{"count", half}, {"<b>wait", half}};
    (void)link_.Send(figures_);
    if (count_ % 50 == 0) (void)link_.Send(SavedMessage{count_});
  }

  [[noreturn]] void Hang() {
    Say("hangs" + PidText());
    for (;;) pause();
  }

  // Where each rank is: its epoch, and how many steps of it were taken.
  std::string PlaceFile(int rank) const { return done_file_ + ".at." + std::to_string(rank); }
  void WritePlace() const {
    const std::string text = std::to_string(epoch_) + " " + std::to_string(steps_) + " ";
    const Fd file(open(PlaceFile(rank_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (write(file.number(), text.data(), text.size()) < 0) std::perror("survivor");
  }
  bool OthersAreHere() const {
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      long long epoch = 0, steps = -1;
      if (std::FILE* const file = std::fopen(PlaceFile(rank).c_str(), "r")) {
        if (std::fscanf(file, "%lld %lld ", &epoch, &steps) != 2) steps = -1;
        std::fclose(file);
      }
      if (epoch != epoch_ || steps < steps_) return false;
    }
    return true;
  }

  void On(const EpochMessage& message) {
    epoch_ = message.epoch;
    rank_ = message.rank;
    world_ = message.world;
    steps_ = 0;
    running_ = true;
    if (together_) WritePlace();
    (void)link_.Send(AtMessage{{count_, 0}});
    Say("epoch " + std::to_string(epoch_) + " rank " + std::to_string(message.rank) + " of " +
        std::to_string(message.world) + PidText() + " count " + std::to_string(count_));
  }
  void On(const BreakMessage& message) {
    Say("broken " + std::to_string(message.epoch) + PidText() + " count " +
        std::to_string(count_));
    Park(message.epoch, false);
  }
  void On(const JoinMessage& message) { Park(message.epoch, true); }
  void On(const StopMessage&) {
    Say("stopped at " + std::to_string(count_) + PidText());
    (void)link_.Send(SavedMessage{count_});
    (void)link_.Send(LeavingMessage{count_});
    End(ByeMessage{0, "stopped"});
  }
  void On(const SaveMessage&) { (void)link_.Send(SavedMessage{count_}); }
  void On(const AliveMessage&) {}   // the link keeps it to itself
  void On(const RefusedMessage&) { over_ = true; }
  void On(const UnknownMessage&) {}

  void Park(int64_t epoch, bool at_boundary) {
    if (!running_ || epoch != epoch_) return;
    running_ = false;
    (void)link_.Send(ParkedMessage{epoch, count_, at_boundary});
  }
  void End(const ByeMessage& message) {
    (void)link_.Send(message);
    over_ = true;
  }
  static std::string PidText() { return " pid " + std::to_string(getpid()); }
  static void Say(const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
  }

  WorkerLink& link_;
  const std::string done_file_;
  const HelloMessage hello_;
  const bool together_;
  bool running_ = false;
  bool over_ = false;
  int64_t epoch_ = 0;
  int rank_ = 0;
  int world_ = 1;
  int64_t steps_ = 0;    // of the epoch
  int64_t count_ = 0;
  const bool tells_figures_ = OwnEnvironment().count("SURVIVOR_FIGURES") > 0;
  FiguresMessage figures_;
};

HelloMessage HelloFrom(const Environment& environment) {
  HelloMessage hello{kControlVersion, "none"};
  const auto fingerprint = environment.find("SURVIVOR_FINGERPRINT");
  if (fingerprint != environment.end()) hello.fingerprint = fingerprint->second;
  const auto version = environment.find("SURVIVOR_VERSION");
  if (version != environment.end()) hello.version = std::stoll(version->second);
  return hello;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[2]) == "deaf") std::signal(SIGTERM, SIG_IGN);
  const std::string done_file = argc > 1 ? argv[1] : "";
  while (access((done_file + ".gate").c_str(), F_OK) == 0) {
    keel::RealClock().SleepFor(std::chrono::milliseconds(1));
  }
  auto link = keel::WorkerLink::FromEnvironment(keel::OwnEnvironment());
  if (!link.ok()) {
    std::puts(link.error().message.c_str());
    return 1;
  }
  const keel::Environment own = keel::OwnEnvironment();
  const bool together = own.count("SURVIVOR_TOGETHER") > 0;
  return Survivor(**link, done_file, HelloFrom(own), together).Run();
}
