// One process a seat, and what its files and streams are.
#include "elastic/crew.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "elastic/stack_signal.h"
#include "elastic/stacks.h"

namespace keel {

Result<std::unique_ptr<Crew>> Crew::Open(boost::asio::io_context& loop, const LaunchConfig& config,
                                         Files& files, Random& random, Environment own,
                                         Events events, StatusLine* status,
                                         Duration stacks_time) {
  KEEL_TRY_ASSIGN(WorkerLogs logs, WorkerLogs::Open(files, random, config.logs));
  return std::unique_ptr<Crew>(
      new Crew(loop, config, files, std::move(own), std::move(events), std::move(logs), status,
               stacks_time));
}

Crew::Crew(boost::asio::io_context& loop, const LaunchConfig& config, Files& files,
           Environment own, Events events, WorkerLogs logs, StatusLine* status,
           Duration stacks_time)
    : loop_(loop),
      config_(config),
      files_(files),
      own_(std::move(own)),
      events_(std::move(events)),
      stacks_time_(stacks_time),
      logs_(std::move(logs)),
      tail_(files, STDOUT_FILENO, STDERR_FILENO, status),
      seats_(config.workers_per_host) {}

Crew::~Crew() {
  KillAll();   // together, so that they do not end one after the other
  for (Seat& seat : seats_) {
    if (seat.process) seat.process->Forget();
  }
  logs_.RemoveEmpty();
}

Status Crew::Start(WorkerStart start) {
  Seat& seat = seats_[start.index];
  seat = {};
  const int attempt = start.epoch ? start.epoch->restarts : 0;
  KEEL_TRY_ASSIGN(start.logs, logs_.Prepare(attempt, start.index));
  KEEL_TRY_ASSIGN(ChildSpec spec, MakeChildSpec(config_, start, own_));
  WorkerProcess::Events events;
  const int index = start.index;
  events.on_message = [this, index](const WorkerMessage& message) {
    events_.on_message(index, message);
  };
  events.on_link_broken = [this, index](const Error& why) {
    events_.on_link_broken(index, why);
  };
  events.on_end = [this, index](const ExitStatus& status) { OnEnd(index, status); };
  KEEL_TRY_ASSIGN(seat.process, WorkerProcess::Start(loop_, std::move(spec), std::move(events)));
  seat.pid = seat.process->pid();
  seat.logs = start.logs;
  Follow(start, seat);
  return Ok();
}

void Crew::Follow(const WorkerStart& start, Seat& seat) {
  Follow(start.logs.out, false, start, seat);
  Follow(start.logs.err, true, start, seat);
}

void Crew::Follow(const StreamPlan& plan, bool is_stderr, const WorkerStart& start, Seat& seat) {
  if (plan.to != StreamPlan::To::kFile || !plan.shown) return;
  const LogOptions& options = logs_.options();
  TailSource source;
  source.path = plan.path;
  source.prefix = LinePrefix(options, start.index, start.rank);
  source.is_stderr = is_stderr;
  source.filtered_path = plan.filtered_path;
  source.filters = is_stderr ? options.err_filters : options.out_filters;
  seat.tails.push_back(tail_.Follow(std::move(source)));
}

void Crew::OnEnd(int index, const ExitStatus& status) {
  Seat& seat = seats_[index];
  for (const int tail : seat.tails) tail_.Finish(tail);
  seat.tails.clear();
  seat.stacks.reset();
  seat.process.reset();
  events_.on_ended(index, status);
}

void Crew::Send(int index, const SupervisorMessage& message) {
  if (seats_[index].process) seats_[index].process->Send(message);
}

void Crew::Signal(int index, int signal) {
  Seat& seat = seats_[index];
  if (!seat.process || (seat.stacks && signal == SIGKILL)) return;
  seat.process->SignalGroup(signal);
  // A stopped process hears no signal but SIGKILL and this one.
  if (signal != SIGKILL) seat.process->SignalGroup(SIGCONT);
}

void Crew::DumpStacks(int index) {
  Seat& seat = seats_[index];
  if (!seat.process || seat.stacks) return;
  const Result<ProcessStacks> stacks = ReadStacks(seat.pid);
  if (!stacks.ok()) return LogWarn("no-stacks", {{"reason", stacks.error().message}});
  const std::string text = StacksText(*stacks);
  for (const std::string& line : SplitList(text, '\n')) {
    LogWarn("stack", {{"local_rank", index}, {"line", line}});
  }
  const bool is_stopped = !stacks->threads.empty() && stacks->threads.front().state == 'T';
  if (is_stopped || !CatchesSignal(seat.pid, StackSignal())) return;
  // It is our child and not reaped, so the number is still its own.
  ::kill(seat.pid, StackSignal());
  seat.stacks = std::make_unique<boost::asio::steady_timer>(loop_, stacks_time_);
  seat.stacks->async_wait([process = seat.process](const boost::system::error_code& failure) {
    if (!failure) process->SignalGroup(SIGKILL);
  });
}

void Crew::KillAll() {
  for (Seat& seat : seats_) {
    if (seat.process) seat.process->SignalGroup(SIGKILL);
  }
}

WorkerFailure Crew::Describe(int index, int rank, const ExitStatus& status, int64_t seen_nanos) {
  const Seat& seat = seats_[index];
  WorkerFailure failure;
  failure.rank = rank;
  failure.local_rank = index;
  failure.pid = seat.pid;
  failure.status = status;
  failure.seen_nanos = seen_nanos;
  if (seat.logs.error_file.empty()) return failure;
  Result<std::optional<WorkerError>> error = ReadErrorFile(files_, seat.logs.error_file);
  if (!error.ok()) {
    LogWarn("error-file", {{"reason", error.error().message}});
  } else if (*error) {
    failure.error_file = seat.logs.error_file;
    failure.error = **std::move(error);
  }
  return failure;
}

void Crew::ShowRest(TimePoint deadline) {
  const Status shown = tail_.Stop(deadline);
  if (!shown.ok()) LogWarn("output-not-shown", {{"reason", shown.error().message}});
}

}  // namespace keel
