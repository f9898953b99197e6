// A signal that comes before main(): the test names it in KEEL_TEST_EARLY_SIGNAL, by its number.
#include <csignal>
#include <cstdlib>

#include <unistd.h>

namespace {

__attribute__((constructor(101))) void SignalOwnProcess() {
  const char* const number = std::getenv("KEEL_TEST_EARLY_SIGNAL");
  if (number != nullptr) kill(getpid(), std::atoi(number));
}

}  // namespace
