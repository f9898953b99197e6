// TrainLog: reports how training goes: log lines, JSON lines, curves for TensorBoard, a progress
// line on a terminal, slow workers by name, and a summary at the end.
// Promises   only the first rank writes; a new first rank goes on where its predecessor stopped
//            (JSON lines are appended, TensorBoard gets another file). A disk that fails costs the
//            log and a warning, never the training.
// Does not   sync what it writes, or take back steps: after a resume from an older state a step
//            may be in the files twice, and the later one counts.
// Threads    one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "trainer/log/event_file.h"
#include "trainer/log/stragglers.h"
#include "trainer/step_times.h"

namespace keel {

struct LoggedStep {
  uint64_t step = 0;         // steps made
  uint64_t data_epoch = 0;
  float loss = 0;
  double learning_rate = 0;
  int rank = 0;
  int world = 1;
  StepTimes times = {};                     // this worker's
  std::vector<int64_t> compute_ns = {};     // by rank; empty: not known for this step
  std::vector<int> lanes = {};              // by rank
  int64_t epoch = 0;                        // of the membership: ranks may be others in another
};

struct LoggedEvaluation {
  uint64_t step = 0;
  double value = 0;
  uint64_t samples = 0;
  Duration took{0};
  int rank = 0;
};

struct TrainLogConfig {
  uint64_t every = 10;                // steps between two entries; 0: none
  uint64_t steps = 0;                 // of the job
  uint64_t samples_per_step = 0;
  std::string jsonl = {};             // file; empty: none
  std::string tensorboard = {};       // directory; empty: none
  std::function<void(const std::string& text)> draw = {};   // the progress line; empty: none
  StragglerPolicy stragglers = {};
  std::function<size_t()> columns = {};   // of what it is drawn on; empty: more than enough
};

// How the time since this worker began was spent.
struct RunTally {
  uint64_t steps = 0;         // made here
  uint64_t samples = 0;
  Duration wall{0};
  StepTimes times = {};       // of the steps that counted
  Duration evaluating{0};

  double SamplesPerSecond() const;
  // The part of the time that went into steps that counted; the rest is starting, breaks, redone
  // steps, evaluation.
  double Goodput() const;
};

// "step 120 of 600 [====      ] loss 0.312, 5.1 steps/s, 1 min 34 s left". A line that is longer
// than `columns` has no bar, and no end if need be: wiping reaches one row of a terminal.
std::string ProgressLine(uint64_t step, uint64_t steps, float loss, uint64_t made,
                         Duration elapsed, size_t columns = SIZE_MAX);

class TrainLog {
 public:
  TrainLog(TrainLogConfig config, Files& files, Clock& clock);
  ~TrainLog();
  TrainLog(const TrainLog&) = delete;
  TrainLog& operator=(const TrainLog&) = delete;

  // To be called after every step, on every worker.
  void OnStep(const LoggedStep& step);
  void OnEvaluation(const LoggedEvaluation& evaluation);
  RunTally tally() const;

 private:
  struct Window;   // what happened since the last entry
  class JsonLines;

  void Write(const LoggedStep& step);
  void NameStragglers(const LoggedStep& step);
  void Curves(uint64_t step, const std::vector<EventScalar>& scalars);
  void Draw(const LoggedStep& step);
  void WipeProgress();
  // Logs once that a file is lost, and does without it from then on.
  void Lost(const char* what, const Error& error);
  void Summary();

  const TrainLogConfig config_;
  Files& files_;
  Clock& clock_;
  const TimePoint begun_;
  RunTally tally_;
  std::unique_ptr<Window> window_;
  StragglerWindow stragglers_;
  std::vector<int> named_;                    // the stragglers that were named last
  int64_t epoch_ = 0;                         // whose they are, and the window's steps
  std::unique_ptr<JsonLines> json_;
  std::unique_ptr<EventFile> events_;
  bool events_lost_ = false;
  bool first_rank_ = false;
  std::optional<TimePoint> drawn_;
};

}  // namespace keel
