// A thread begins with the mask of the one that makes it.
#include "store/s3/own_thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace keel {

std::thread OwnThread(std::function<void()> body) {
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&blocked, own);
  }
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigdelset(&blocked, number);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace keel
