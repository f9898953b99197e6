// How the calling thread, and those it starts, share processors with threads that are waited for.
// Promises   a hint: where the system does not take it, all goes on as before.
// Does not   last beyond the thread; a process of ours keeps its priority.
#pragma once

namespace keel {

// For short work that is needed soon: it runs as much as others do, but does not push one aside
// that computes, only because it woke up.
void DoNotPreempt();

// The same while it lives: for threads that a library starts from the calling one meanwhile.
class NotPreempting {
 public:
  NotPreempting();
  ~NotPreempting();
  NotPreempting(const NotPreempting&) = delete;
  NotPreempting& operator=(const NotPreempting&) = delete;

 private:
  const int before_;
};

// For long work that nobody waits for: it takes what others leave, and about a tenth of a processor
// where they leave nothing.
void LetOthersFirst();

}  // namespace keel
