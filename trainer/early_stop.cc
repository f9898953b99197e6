// A function that the system calls before all initialisers, and the handlers that it installs.
#include "trainer/early_stop.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>

#include "elastic/protocol/control_link.h"
#include "elastic/protocol/exit_codes.h"

#if defined(KEEL_UNDER_ADDRESS_SANITIZER) || defined(KEEL_UNDER_THREAD_SANITIZER)
#define KEEL_SANITIZER_COMES_FIRST 1
#endif

namespace keel {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

// The handler may be put back after that, by who had replaced it.
std::atomic<bool> has_ended{false};

bool IsOfSupervisor(char** environment) {
  const size_t bytes = std::strlen(kControlFdVariable);
  for (; *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, kControlFdVariable, bytes) == 0 &&
        (*environment)[bytes] == '=') {
      return true;
    }
  }
  return false;
}

void OnSignal(int signal) {
  if (has_ended) {
    (void)std::signal(signal, SIG_DFL);
    (void)raise(signal);   // it comes as this handler returns
    return;
  }
  if (signal == SIGUSR2) return;
  constexpr std::string_view kText = "stopped before training began: nothing is lost\n";
  (void)!write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kExitStopped);
}

void Replace(void (*wanted)(int), void (*handler)(int)) {
  for (const int signal : kSignals) {
    struct sigaction current {};
    if (sigaction(signal, nullptr, &current) != 0 || current.sa_handler != wanted) continue;
    struct sigaction next {};
    next.sa_handler = handler;
    next.sa_flags = SA_RESTART;
    (void)sigaction(signal, &next, nullptr);
  }
}

// It uses only what of the C library needs no initialiser. A sanitizer's own initialiser must come
// before it; then it runs after those of all libraries.
#ifdef KEEL_SANITIZER_COMES_FIRST
__attribute__((constructor(101)))
#endif
void Begin(int /*argc*/, char** /*argv*/, char** environment) {
  if (!IsOfSupervisor(environment)) Replace(SIG_DFL, OnSignal);
}
#ifndef KEEL_SANITIZER_COMES_FIRST
__attribute__((section(".preinit_array"), used)) void (*const begin)(int, char**, char**) = Begin;
#endif

}  // namespace

void EndEarlyStop() {
  has_ended = true;
  Replace(OnSignal, SIG_DFL);
}

}  // namespace keel
