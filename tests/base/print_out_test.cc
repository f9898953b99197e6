// What is printed arrives, or is known to be lost. Each case prints in a process of its own, since
// a loss stays known until its end.
#include "base/print_out.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "base/log.h"
#include "base/process_setup.h"

namespace keel {
namespace {

// Runs `work` in a child whose stdout is `descriptor`; its exit code.
int InChild(int descriptor, const std::function<int()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    IgnoreSigpipe();
    dup2(descriptor, STDOUT_FILENO);
    _exit(work());
  }
  int ended = 0;
  EXPECT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended)) << ended;
  return WEXITSTATUS(ended);
}

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    CloseWriter();
  }
  void CloseReader() { Close(ends[0]); }
  void CloseWriter() { Close(ends[1]); }
  static void Close(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  std::string ReadToEnd() {
    CloseWriter();
    std::string text;
    char piece[4096];
    for (;;) {
      const ssize_t got = read(ends[0], piece, sizeof piece);
      if (got <= 0) return text;
      text.append(piece, static_cast<size_t>(got));
    }
  }

  int ends[2] = {-1, -1};
};

TEST(PrintOut, ComesInOrderWithWhatStdioHolds) {
  Pipe pipe;
  EXPECT_EQ(InChild(pipe.ends[1], [] {
              std::printf("first ");
              PrintOut("%s %d ", "second", 2);
              std::printf("third\n");
              return OutputStatus().ok() ? 0 : 1;
            }),
            0);
  EXPECT_EQ(pipe.ReadToEnd(), "first second 2 third\n");
}

TEST(PrintOut, AFullDiskIsToldOnceAndStaysKnown) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_EQ(InChild(full, [] {
              int told = 0;
              LogToCallback([&](std::string_view line) {
                told += line.find(" output-lost reason=") != line.npos ? 1 : 0;
              });
              const Status first = PrintOutText("a\n");
              PrintOut("b\n");
              const Status end = OutputStatus();
              const bool named = !first.ok() && first.error().code == Code::kNoSpace &&
                                 first.error().message.find("No space left") != std::string::npos;
              return named && !end.ok() && end.error().code == Code::kNoSpace && told == 1 ? 0 : 1;
            }),
            0);
  close(full);
}

TEST(PrintOut, AReaderThatIsGoneIsAnErrorAndNoDeath) {
  Pipe pipe;
  pipe.CloseReader();
  EXPECT_EQ(InChild(pipe.ends[1], [] {
              const Status status = PrintOutText("a\n");
              return !status.ok() && status.error().code == Code::kPeerLost ? 0 : 1;
            }),
            0);
}

TEST(PrintOut, WhatStdioLostByItselfIsKnownAtTheEnd) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  for (const bool flushed : {false, true}) {
    EXPECT_EQ(InChild(full, [flushed] {
                std::printf("a line of a program's own\n");
                if (flushed) std::fflush(stdout);
                return OutputStatus().ok() ? 1 : 0;
              }),
              0)
        << flushed;
  }
  close(full);
}

// The pipe holds less than the text, and whoever shares it has made it non-blocking.
TEST(PrintOut, WaitsForASlowReaderOfANonBlockingPipe) {
  Pipe pipe;
  ASSERT_EQ(fcntl(pipe.ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string text(1 << 20, 'x');
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(pipe.ends[1], STDOUT_FILENO);
    _exit(PrintOutText(text).ok() ? 0 : 1);
  }
  EXPECT_EQ(pipe.ReadToEnd().size(), text.size());
  int ended = 0;
  EXPECT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace keel
