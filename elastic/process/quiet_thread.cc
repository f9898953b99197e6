// A thread inherits the signal mask of the one that makes it.
#include "elastic/process/quiet_thread.h"

#include <pthread.h>

#include <csignal>
#include <utility>

#include "elastic/process/stack_signal.h"

namespace keel {

std::thread StartQuietThread(const std::string& name, std::function<void()> body) {
  sigset_t quiet;
  sigset_t before;
  sigfillset(&quiet);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, StackSignal()}) {
    sigdelset(&quiet, own);
  }
  pthread_sigmask(SIG_SETMASK, &quiet, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

}  // namespace keel
