// Crew: what is done about a worker that hangs, with real ones (hanging_worker.cc).
#include "elastic/workers/crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <future>
#include <set>
#include <vector>

#include "base/environment.h"
#include "base/faulty_files.h"
#include "base/log.h"
#include "base/posix_files.h"
#include "base/random.h"
#include "elastic/process/politeness.h"
#include "elastic/process/proc_file.h"
#include "elastic/process/stacks.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr bool kHasForeignThread = kUnderThreadSanitizer;

class CrewOfOneThatHangs : public ::testing::Test {
 protected:
  CrewOfOneThatHangs() {
    LogToCallback([this](std::string_view line) { log_ += line; });
  }
  ~CrewOfOneThatHangs() override {
    crew_.reset();
    LogToStderr();
  }

  void Start(const std::string& argument, int deaf_threads = 1,
             Duration stacks_limit = kStacksLimit, bool polite = false) {
    plan_.program = {WorkerProgram::Kind::kBinary, "", KEEL_BIN_DIR "/hanging_worker",
                       {argument, std::to_string(deaf_threads)}};
    plan_.logs.log_dir = folder_.File("logs");
    plan_.logs.redirects = *ParseStreamMap("3");
    Crew::Events events;
    events.on_message = [](int, const WorkerMessage&) {};
    events.on_link_broken = [](int, const Error&) {};
    events.on_ending = [](int, const ExitStatus&) {};
    events.on_ended = [this](int, const ExitStatus& status) { ended_ = status; };
    auto crew = Crew::Open(loop_, plan_, *files_, random_, OwnEnvironment(), std::move(events),
                           nullptr, stacks_limit, kSpareDelay, end_politeness_);
    ASSERT_OK(crew);
    crew_ = *std::move(crew);
    WorkerStart start;
    start.index = 0;
    start.polite = polite;
    ASSERT_OK(crew_->Start(std::move(start)));
    ASSERT_TRUE(Until([&] { return Has(Worker("stdout.log"), "up"); }));
  }
  std::string Worker(const std::string& file) {
    const auto runs = files_->List(plan_.logs.log_dir);   // this one
    if (!runs.ok() || runs->empty()) return "";
    const std::string path =
        plan_.logs.log_dir + "/" + runs->front().name + "/attempt_0/0/" + file;
    return files_->Stat(path).ok() ? ReadFile(path) : "";
  }
  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  template <class Condition>
  [[nodiscard]] bool Until(Condition is_so) {
    const TimePoint deadline = RealClock().Monotonic() + 60s;
    while (!is_so()) {
      if (RealClock().Monotonic() > deadline) return false;
      loop_.restart();
      loop_.run_one_for(10ms);
    }
    return true;
  }

  TempDir folder_;
  PosixFiles own_files_;
  Files* files_ = &own_files_;
  Random random_{1};
  WorkerPlan plan_;
  std::string log_;
  std::optional<ExitStatus> ended_;
  boost::asio::io_context loop_;
  std::unique_ptr<Crew> crew_;
  Crew::PolitenessEnd end_politeness_ = EndPoliteness;
};

TEST_F(CrewOfOneThatHangs, WithoutAHandlerItIsLookedAtFromOutsideAndKilledAtOnce) {
  if (kHasForeignThread) {
    GTEST_SKIP() << "ThreadSanitizer adds a thread, and holds back signals in calls";
  }
  Start("silent");
  // Until its threads have come to where they hang.
  ASSERT_TRUE(Until([&] {
    crew_->DumpStacks(0);
    return Has(log_, "stuck-reader: sleeping in read(") && Has(log_, "main-waits: sleeping");
  })) << log_;
  EXPECT_THAT(log_, AllOf(HasSubstr("warn stack local_rank=0"),
                          HasSubstr("hanging_worker silent 1), 3 threads")));
  crew_->Signal(0, SIGKILL);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, ExitStatus::Killed(SIGKILL)) << "not by our signal, which it does not know";
  EXPECT_THAT(Worker("stderr.log"), Not(HasSubstr("keel: ")));
}

// It goes on in its handler although the kill has been asked for at once.
TEST_F(CrewOfOneThatHangs, WithAHandlerItHasTheTimeToWriteItsStacks) {
  constexpr const char* kLast = "end of the stacks of process";
  if (kHasForeignThread) {
    GTEST_SKIP() << "ThreadSanitizer adds a thread, and holds back signals in calls";
  }
  // Threads that cannot answer take none of its time: being waited for, they would take 4 s.
  Start("answers", 30, 3s);
  crew_->DumpStacks(0);
  crew_->Signal(0, SIGKILL);
  ASSERT_TRUE(Until([&] { return ended_.has_value() || Has(Worker("stderr.log"), kLast); }));
  EXPECT_THAT(log_, HasSubstr("hanging_worker answers 30)")) << "from outside, too";
  EXPECT_THAT(Worker("stderr.log"),
              AllOf(HasSubstr("were asked for"), HasSubstr("(main-waits)"), HasSubstr(kLast)));
}

TEST_F(CrewOfOneThatHangs, WhenThatTimeIsOverItIsKilled) {
  if (kHasForeignThread) {
    GTEST_SKIP() << "ThreadSanitizer adds a thread, and holds back signals in calls";
  }
  Start("answers", 1, 10ms);
  crew_->DumpStacks(0);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, ExitStatus::Killed(SIGKILL));
}

TEST_F(CrewOfOneThatHangs, ItsEndIsToldAlsoWhereItsErrorFileGivesNoAnswer) {
  // They live as long as the process, as the call does that gets no answer.
  static auto& below = *new PosixFiles;
  static auto& silent = *new FaultyFiles(below);
  static auto& answers = *new std::promise<void>;
  files_ = &silent;
  Start("silent");
  silent.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kOpen, .path_part = "error.json",
               .act = [] { answers.get_future().wait(); }});
  crew_->Signal(0, SIGKILL);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  EXPECT_EQ(crew_->Describe(0, 0, *ended_, 0).status, ExitStatus::Killed(SIGKILL));
  EXPECT_THAT(log_, AllOf(HasSubstr("warn error-file"), HasSubstr("error.json does not answer")));
  answers.set_value();
}

// A stopped process would not come to its handler.
TEST_F(CrewOfOneThatHangs, AStoppedOneIsKilledAtOnce) {
  Start("answers");
  const pid_t pid = crew_->Describe(0, 0, {}, 0).pid;
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  ASSERT_TRUE(Until([&] { return ReadStacks(pid)->threads.front().state == 'T'; }));
  crew_->DumpStacks(0);
  EXPECT_THAT(log_, HasSubstr("stopped by a signal"));
  const std::string status = ReadFile("/proc/" + std::to_string(pid) + "/status");
  EXPECT_THAT(status, HasSubstr("ShdPnd:\t0000000000000000")) << "no signal waits for it";
  crew_->Signal(0, SIGKILL);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  EXPECT_EQ(*ended_, ExitStatus::Killed(SIGKILL));
}

TEST_F(CrewOfOneThatHangs, APoliteOneIsSoUntilItIsSentAnEpoch) {
  if (!CanEndPoliteness()) GTEST_SKIP() << "this user may not raise a priority";
  Start("silent", 1, kStacksLimit, true);
  const int own = getpriority(PRIO_PROCESS, 0);
  const pid_t pid = crew_->Describe(0, 0, {}, 0).pid;
  const auto nices = [&] {
    std::set<int> all;
    for (const pid_t thread : ThreadsOf(pid)) {
      all.insert(getpriority(PRIO_PROCESS, static_cast<id_t>(thread)));
    }
    return all;
  };
  crew_->Send(0, AliveMessage{});
  EXPECT_EQ(nices(), std::set<int>{own + 10});
  crew_->Send(0, EpochMessage{});
  EXPECT_TRUE(Until([&] { return nices() == std::set<int>{own}; })) << "with its threads";
}

// As it does to ordinary users, all of whom together may change so many.
TEST_F(CrewOfOneThatHangs, WhereTheKernelLetsNoneEndPolitenessNowItIsAskedAgain) {
  if (!CanEndPoliteness()) GTEST_SKIP() << "this user may not raise a priority";
  constexpr int kRefusals = 20;
  std::vector<pid_t> asked;
  end_politeness_ = [&](pid_t leader) {
    asked.push_back(leader);
    return static_cast<int>(asked.size()) > kRefusals;
  };
  Start("silent", 1, kStacksLimit, true);
  const size_t before = asked.size();   // none, unless the worker took long to come up
  crew_->Send(0, EpochMessage{});
  EXPECT_LE(asked.size(), before + 1) << "the loop has other things to do meanwhile";
  crew_->Send(0, EpochMessage{});
  EXPECT_TRUE(Until([&] { return asked.size() > kRefusals; }));
  crew_->Send(0, EpochMessage{});
  EXPECT_EQ(asked, std::vector<pid_t>(kRefusals + 1, crew_->Describe(0, 0, {}, 0).pid));
}

TEST_F(CrewOfOneThatHangs, AfterItsEndThereIsNothingToLookAt) {
  Start("silent");
  crew_->Signal(0, SIGKILL);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  log_.clear();
  crew_->DumpStacks(0);
  EXPECT_EQ(log_, "");
}

}  // namespace
}  // namespace keel
