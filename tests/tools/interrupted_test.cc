// Commands that write, ended by a signal at any of their calls to the disk: nothing is left of what
// they did not finish; and what SIGKILL leaves, the next run of the same command removes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/ckpt/state.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/support/temp_dir.h"
#include "tools/keel/command.h"
#include "tools/keel/stop_signals.h"

namespace keel {
namespace {

struct Case {
  std::string command;
  std::vector<std::string> arguments;  // "%" is the test's folder

  friend std::ostream& operator<<(std::ostream& out, const Case& the) { return out << the.command; }
};

class Interrupted : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const TestState state = TestState::Make(1, 400);
    MemorySource source(state.Spans());
    ASSERT_OK(SaveCheckpoint(files_, PlanOf(state, folder_.File("run"), 5, 1, 1024), source, {},
                             0));
    ASSERT_OK(WriteDurably(files_, folder_.File("text"), "To be, or not to be"));
    ASSERT_OK(WriteDurably(files_, folder_.File("cifar"), std::string(3073 * 2, '\1')));
    ASSERT_EQ(RunAlone({"export", {"%/run", "%/in"}}, 0, 0), 0);
    before_ = Everything(folder_.path());
  }

  // Every path below a directory, sorted.
  std::vector<std::string> Everything(const std::string& dir) {
    std::vector<std::string> paths;
    const auto entries = files_.List(dir);
    EXPECT_OK(entries);
    for (const DirEntry& entry : *entries) {
      const std::string path = JoinPath(dir, entry.name);
      paths.push_back(path);
      if (entry.kind != FileKind::kDirectory) continue;
      const auto below = Everything(path);
      paths.insert(paths.end(), below.begin(), below.end());
    }
    return paths;
  }

  // Runs the command in a process of its own, which sends itself `signal` so many times at its n-th
  // call to the disk; gives what waitpid() says.
  int RunAlone(const Case& the, int signal, int call, int times = 1) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(RunHere(the, signal, call, times));
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }

  int RunHere(const Case& the, int signal, int call, int times) {
    FaultyFiles faulty(files_);
    if (call > 0) {
      faulty.Plan({.kind = Fault::Kind::kAct, .at_call = call, .act = [&] {
                     for (int i = 0; i < times; ++i) ::raise(signal);
                   }});
    }
    StoppableFiles files(faulty);
    OptionInputs inputs;
    for (std::string argument : the.arguments) {
      if (argument.starts_with("%")) argument.replace(0, 1, folder_.path());
      inputs.arguments.push_back(argument);
    }
    for (const Command& command : Commands()) {
      if (command.name != the.command) continue;
      const auto options = ParseOptions(command.table(), inputs);
      if (!options.ok()) return 2;
      const World world{files, RealClock(), Paint(false), false,
                        [](std::string_view) { return Status(Ok()); }};
      const auto outcome = command.run(world, *options);
      EndByStopSignal();
      if (!outcome.ok()) std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
      return outcome.ok() ? 0 : 3;
    }
    return 2;
  }

  void RemoveAllBut(const std::vector<std::string>& kept) {
    std::vector<std::string> all = Everything(folder_.path());
    for (auto path = all.rbegin(); path != all.rend(); ++path) {
      if (std::find(kept.begin(), kept.end(), *path) != kept.end()) continue;
      const auto info = files_.Stat(*path);
      ASSERT_OK(info);
      ASSERT_OK(info->kind == FileKind::kDirectory ? files_.RemoveDir(*path)
                                                   : files_.Remove(*path));
    }
  }

  PosixFiles files_;
  TempDir folder_;
  std::vector<std::string> before_;
};

TEST_P(Interrupted, LeavesNothingAndEndsByTheSignal) {
  ASSERT_EQ(RunAlone(GetParam(), 0, 0), 0);
  const std::vector<std::string> whole = Everything(folder_.path());
  ASSERT_GT(whole.size(), before_.size());
  int signals = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (int call = 1;; call += kPointStride) {
      RemoveAllBut(before_);
      const int status = RunAlone(GetParam(), signal, call);
      const std::vector<std::string> left = Everything(folder_.path());
      if (WIFEXITED(status)) {
        EXPECT_EQ(WEXITSTATUS(status), 0) << "call " << call;
        break;
      }
      ++signals;
      ASSERT_EQ(WTERMSIG(status), signal) << "call " << call;
      // After the renaming it is whole, and stays. A save has random names: only count them.
      ASSERT_TRUE(left == before_ || left.size() == whole.size())
          << "call " << call << " left " << left.back();
    }
  }
  EXPECT_GE(signals, 15 / kPointStride);
}

TEST_P(Interrupted, AfterAKillTheNextRunRemovesWhatIsLeft) {
  ASSERT_EQ(RunAlone(GetParam(), 0, 0), 0);
  const std::vector<std::string> whole = Everything(folder_.path());
  int kills = 0;
  for (int call = 1;; call += kPointStride) {
    RemoveAllBut(before_);
    if (WIFEXITED(RunAlone(GetParam(), SIGKILL, call))) break;
    ++kills;
    (void)RunAlone(GetParam(), 0, 0);  // it fails where the kill came after the renaming
    const std::vector<std::string> left = Everything(folder_.path());
    ASSERT_EQ(left.size(), whole.size()) << "call " << call << " left " << left.back();
  }
  EXPECT_GE(kills, 5 / kPointStride);
}

// GNU timeout, and a terminal that closes. An impatient user's second one does end it.
TEST_P(Interrupted, TheSameSignalOnceMoreAtOnceIsNoSecondOneUnlessOfAUser) {
  const auto is_unfinished = [](const std::string& path) {
    return path.ends_with(".tmp") || path.ends_with(".lck0");
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int halves = 0;
    for (int call = 1;; call += kPointStride) {
      RemoveAllBut(before_);
      const int status = RunAlone(GetParam(), signal, call, 2);
      if (WIFEXITED(status)) break;
      ASSERT_EQ(WTERMSIG(status), signal) << "call " << call;
      const std::vector<std::string> left = Everything(folder_.path());
      if (std::any_of(left.begin(), left.end(), is_unfinished)) ++halves;
    }
    EXPECT_EQ(halves > 0, signal == SIGINT) << "signal " << signal << ": " << halves << " times";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Interrupted,
    testing::Values(Case{"export", {"%/run", "%/out"}},
                    Case{"cat", {"%/run", "model.weight", "--output", "%/out"}},
                    Case{"import", {"%/in", "%/new/run", "--threads", "1"}},
                    Case{"tokens", {"%/out", "%/text"}},
                    Case{"records", {"%/out", "%/cifar", "--from", "cifar10"}}),
    [](const auto& info) { return info.param.command; });

}  // namespace
}  // namespace keel
