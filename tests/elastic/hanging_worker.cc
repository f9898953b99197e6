// A program that hangs on purpose, in different ways in each thread; stacks_test.cc looks at it.
// Arguments: "answers" to write its stacks when asked; how many threads shall hear nothing.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "elastic/process/stack_signal.h"

namespace {

void Name(const char* name) { pthread_setname_np(pthread_self(), name); }

// Waits for ever, and hears nothing that can be blocked.
[[noreturn]] void Suspend() {
  sigset_t all;
  sigfillset(&all);
  for (;;) sigsuspend(&all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "answers") keel::InstallStackDump();
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  std::thread reader([&] {
    Name("stuck-reader");
    char byte = 0;
    while (read(pipe_ends[0], &byte, 1) < 0) {
    }
  });
  std::vector<std::thread> deaf(argc > 2 ? std::stoul(argv[2]) : 1);
  for (std::thread& one : deaf) {
    one = std::thread([] {
      Name("deaf");
      Suspend();
    });
  }
  Name("main-waits");
  std::puts("up");
  std::fflush(stdout);
  reader.join();
  for (std::thread& one : deaf) one.join();
}
