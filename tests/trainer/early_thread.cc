// A thread that is there before main(), as those of a numerical library are, and blocks no signal.
// It is made where KEEL_TEST_EARLY_THREAD is set, and tells its number: "early thread 12".
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* Tell(void* /*unused*/) {
  char text[64];
  const int bytes =
      std::snprintf(text, sizeof text, "early thread %ld\n", syscall(SYS_gettid));
  (void)!write(STDOUT_FILENO, text, static_cast<size_t>(bytes));
  for (;;) pause();
}

__attribute__((constructor)) void StartEarlyThread() {
  if (std::getenv("KEEL_TEST_EARLY_THREAD") == nullptr) return;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Tell, nullptr) == 0) pthread_detach(thread);
}

}  // namespace
