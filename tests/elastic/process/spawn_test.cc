// What a spawned program finds around itself, and the words for one that does not start.
#include "elastic/process/spawn.h"

#include <boost/filesystem.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TimePoint Limit() { return RealClock().Monotonic() + 60s; }

class SpawnTest : public ::testing::Test {
 protected:
  SpawnTest() {
    spec_.environment = OwnEnvironment();
    spec_.out = Stream::File(folder_.File("out"));
  }

  // What the script prints.
  std::string Printed(const std::string& script) {
    spec_.argv = {"/bin/sh", "-c", script};
    const auto child = Spawn(spec_);
    EXPECT_OK(child);
    if (!child.ok()) return "";
    const auto status = child->Wait(Limit());
    EXPECT_TRUE(status.ok() && status->ok());
    return ReadFile(folder_.File("out"));
  }

  Error ErrorOf(std::vector<std::string> argv) {
    spec_.argv = std::move(argv);
    const auto child = Spawn(spec_);
    EXPECT_FALSE(child.ok());
    return child.ok() ? Error{} : child.error();
  }

  TempDir folder_;
  ChildSpec spec_;
};

TEST_F(SpawnTest, AProgramIsFoundInThePathItIsGiven) {
  WriteFile(folder_.File("greet"), "#!/bin/sh\necho hello $1\n", 0755);
  spec_.environment["PATH"] = folder_.path();
  spec_.argv = {"greet", "you"};
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec_));
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Exited(0));
  EXPECT_EQ(ReadFile(folder_.File("out")), "hello you\n");
}

TEST_F(SpawnTest, TheEnvironmentIsExactlyTheOneGiven) {
  spec_.environment = {{"ONE", "1"}, {"TWO", "a b"}};
  EXPECT_EQ(Printed("tr '\\0' '\\n' < /proc/$$/environ"), "ONE=1\nTWO=a b\n");
}

TEST_F(SpawnTest, TheWorkingDirectoryHoldsForRelativeProgramsToo) {
  boost::filesystem::create_directory(folder_.File("inside"));
  WriteFile(folder_.File("inside/here"), "#!/bin/sh\npwd\n", 0755);
  spec_.working_dir = folder_.File("inside");
  spec_.argv = {"./here"};
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec_));
  EXPECT_EQ(*child.Wait(Limit()), ExitStatus::Exited(0));
  EXPECT_EQ(ReadFile(folder_.File("out")), folder_.File("inside") + "\n");
}

TEST_F(SpawnTest, StreamsLeadWhereTheyAreSentAndFilesGrow) {
  WriteFile(folder_.File("in"), "from a file\n");
  spec_.in = Stream::File(folder_.File("in"));
  spec_.err = Stream::File(folder_.File("out"));
  Printed("cat; echo error >&2");
  EXPECT_EQ(Printed("cat"), "from a file\nerror\nfrom a file\n");
}

TEST_F(SpawnTest, InputIsEmptyUnlessItIsGiven) { EXPECT_EQ(Printed("cat; echo end"), "end\n"); }

TEST_F(SpawnTest, TheChildLeadsASessionOfItsOwn) {
  // Fields 5 and 6 of stat: process group and session.
  const std::string printed = Printed("echo $$; cut -d' ' -f5,6 /proc/$$/stat");
  const std::string pid = printed.substr(0, printed.find('\n'));
  EXPECT_EQ(printed, pid + "\n" + pid + " " + pid + "\n");
}

TEST_F(SpawnTest, SignalsAreAtTheirDefaultsAndUnblocked) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto old_pipe = signal(SIGPIPE, SIG_IGN);
  const auto old_user = signal(SIGUSR1, SIG_IGN);
  const std::string printed = Printed("exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
  signal(SIGPIPE, old_pipe);
  signal(SIGUSR1, old_user);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(printed, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(SpawnTest, OurOwnSignalMaskIsLeftAsItWas) {
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Printed("true");
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < NSIG; ++number) {
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
  }
}

TEST_F(SpawnTest, NoOtherDescriptorIsInherited) {
  const Fd careless(open("/dev/null", O_RDONLY));   // without O_CLOEXEC, as careless libraries do
  const Fd high(fcntl(careless.number(), F_DUPFD, 500));
  ASSERT_TRUE(high.valid());
  // The shell expands the pattern itself, holding /proc/self/fd open meanwhile: hence 3.
  EXPECT_EQ(Printed("cd /proc/self/fd; echo *"), "0 1 2 3\n");
}

TEST_F(SpawnTest, NamedDescriptorsArriveUnderTheirNumbersAlsoWhenTheyCross) {
  ASSERT_OK_AND_ASSIGN(PipeEnds first, MakePipe());
  ASSERT_OK_AND_ASSIGN(PipeEnds second, MakePipe());
  // Each is to get a number that the other, or the spawner's own pipe, may have here.
  spec_.fds = {{first.write.number(), second.write.number()},
               {second.write.number(), first.write.number()},
               {first.write.number(), 40}};
  Printed("echo via second >&" + std::to_string(first.write.number()) + "; echo via first >&" +
          std::to_string(second.write.number()));
  std::array<char, 64> text{};
  EXPECT_EQ(read(first.read.number(), text.data(), text.size()), 10);
  EXPECT_STREQ(text.data(), "via first\n");
  text = {};
  EXPECT_EQ(read(second.read.number(), text.data(), text.size()), 11);
  EXPECT_STREQ(text.data(), "via second\n");
}

TEST_F(SpawnTest, ADescriptorThatKeepsItsNumberIsInherited) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  spec_.fds = {{theirs.number(), theirs.number()}};
  spec_.argv = {"/bin/bash", "-c", "read line <&" + std::to_string(theirs.number()) +
                                       "; echo got $line >&" + std::to_string(theirs.number())};
  ASSERT_OK_AND_ASSIGN(const Child child, Spawn(spec_));
  ASSERT_EQ(write(ours.number(), "hello\n", 6), 6);
  std::array<char, 64> text{};
  ASSERT_EQ(read(ours.number(), text.data(), text.size()), 10);
  EXPECT_STREQ(text.data(), "got hello\n");
}

TEST_F(SpawnTest, ManyThreadsCanSpawnAtOnce) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      for (int round = 0; round < 25; ++round) {
        ChildSpec spec;
        spec.argv = {"sh", "-c", "exit " + std::to_string(number)};
        spec.environment = OwnEnvironment();
        const auto child = Spawn(spec);
        ASSERT_OK(child);
        EXPECT_EQ(*child->Wait(Limit()), ExitStatus::Exited(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SpawnTest, FailuresToStartSayWhatWasTried) {
  EXPECT_THAT(ErrorOf({"no-such-tool"}).message,
              HasSubstr("starting 'no-such-tool': program not found: 'no-such-tool' is in no"));
  const Error missing = ErrorOf({"/no/such/tool"});
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("program not found: there is no '/no/such/tool'"));

  WriteFile(folder_.File("plain"), "text", 0644);
  EXPECT_THAT(ErrorOf({folder_.File("plain")}).message,
              HasSubstr("not executable: permission denied"));
  WriteFile(folder_.File("script"), "#!/no/such/shell\n", 0755);
  EXPECT_THAT(ErrorOf({folder_.File("script")}).message,
              HasSubstr("bad interpreter: its first line names '/no/such/shell'"));
  WriteFile(folder_.File("dos"), "#!/bin/sh\r\nexit 0\r\n", 0755);
  EXPECT_THAT(ErrorOf({folder_.File("dos")}).message, HasSubstr("ends with a carriage return"));
  WriteFile(folder_.File("data"), "#!" + folder_.File("plain") + "\n", 0755);
  EXPECT_THAT(ErrorOf({folder_.File("data")}).message,
              HasSubstr("names '" + folder_.File("plain") + "', which is not executable"));
  EXPECT_THAT(ErrorOf({folder_.path()}).message, HasSubstr("is a folder, not a program"));
  WriteFile(folder_.File("words"), "just words\n", 0755);
  EXPECT_THAT(ErrorOf({folder_.File("words")}).message,
              HasSubstr("not a program for this machine"));
  EXPECT_THAT(ErrorOf({}).message, HasSubstr("argv is empty"));
}

TEST_F(SpawnTest, AMissingWorkingDirectoryIsNamed) {
  spec_.working_dir = folder_.File("nowhere");
  const Error error = ErrorOf({"/bin/true"});
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("entering its working directory '" + spec_.working_dir));
}

TEST_F(SpawnTest, BadDescriptorsAreRefusedBeforeAnythingStarts) {
  spec_.fds = {{STDIN_FILENO, 5}, {STDIN_FILENO, 5}};
  EXPECT_THAT(ErrorOf({"true"}).message, HasSubstr("two descriptors are to have one number"));
  spec_.fds = {{19999, 5}};
  EXPECT_THAT(ErrorOf({"true"}).message, HasSubstr("descriptor 19999 cannot become 5"));
  spec_.fds = {};
  spec_.out = Stream::File(folder_.File("no/such/folder/out"));
  EXPECT_THAT(ErrorOf({"true"}).message, HasSubstr("/no/such/folder/out' as standard stream 1"));
}

}  // namespace
}  // namespace keel
