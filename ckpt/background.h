// BackgroundSave: a save that runs beside training, one at a time.
// Promises   Start() does no input or output and returns at once. A failure is kept until it is
//            asked for; it leaves at most a partial directory that gc removes. The destructor
//            cancels and waits.
// Does not   copy tensors (ckpt/snapshot.h does) or guard borrowed ones against being changed:
//            the owner of the source waits for done(). Does not vote, unless `commit` is set.
// Threads    all methods from any thread; the work runs in one of its own, and in those that it
//            starts.
// Errors     kExists: a save is in flight, or its outcome was not yet taken.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "ckpt/save.h"

namespace keel {

class BackgroundSave {
 public:
  struct Request {
    SavePlan plan;
    std::shared_ptr<TensorSource> source;  // kept until the save has ended
    WriteOptions options;                  // its progress is replaced by progress()
    bool commit = false;                   // a single writer: commit it too
    bool awaited = false;                  // somebody waits, so it need not give way to others
  };
  struct Outcome {
    Status status;
    ShardSummary shard;
    Duration took{0};                      // all of it
    // Commit() or Abandon() it when the group has voted. Null after a failure, and once it is
    // committed.
    std::unique_ptr<Save> save;
    std::optional<CommitReport> committed;
  };

  // `clock` stamps the manifest. Both outlive this.
  BackgroundSave(Files& files, Clock& clock) : files_(files), clock_(clock) {}
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  Status Start(Request request);

  bool in_flight() const;  // started, and its outcome not taken
  bool done() const;       // the outcome can be taken without waiting
  const Progress& progress() const { return progress_; }
  void Cancel() {
    progress_.cancel = true;
    progress_.bell.Ring();
  }
  void Hurry() { progress_.hurry = true; }

  // Waits for at most this long; returns done().
  bool AwaitDone(Duration limit) const;
  // Waits for the end, and returns the outcome. kNotFound: nothing was started.
  Result<Outcome> Take();

 private:
  void Run(Request request);
  Outcome Work(Request& request);

  Files& files_;
  Clock& clock_;
  Progress progress_;

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool in_flight_ = false;          // guarded by mutex_
  std::optional<Outcome> outcome_;  // guarded by mutex_
  std::thread thread_;              // guarded by mutex_
};

}  // namespace keel
