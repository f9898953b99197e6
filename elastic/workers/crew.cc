// One process for each seat, with its files and streams.
#include "elastic/workers/crew.h"

#include <boost/asio/post.hpp>

#include <signal.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/within.h"
#include "elastic/process/ending.h"
#include "elastic/process/stack_signal.h"
#include "elastic/process/stacks.h"

namespace keel {
namespace {

// Per stream: the most that is kept for the console when its file does not take it.
constexpr size_t kSpoolBytesMax = 1 << 20;
constexpr Duration kFinishLimit = std::chrono::seconds(2);
// How often a look is taken for workers that the kernel is ending, which costs 10 us for each.
// The second one that sees it tells: by then all that the worker said has been heard, and older
// kernels have noted with what it ends.
constexpr Duration kEndingLook = std::chrono::milliseconds(4);
constexpr int kEndingTold = 2;

}  // namespace

Result<std::unique_ptr<Crew>> Crew::Open(boost::asio::io_context& loop, const WorkerPlan& plan,
                                         Files& files, Random& random, Environment own,
                                         Events events, StatusLine* status,
                                         Duration stacks_limit, Duration spare_delay,
                                         PolitenessEnd end_politeness) {
  KEEL_TRY_ASSIGN(WorkerLogs logs, WorkerLogs::Open(files, random, plan.logs));
  std::unique_ptr<Crew> crew(
      new Crew(loop, plan, files, std::move(own), std::move(events), std::move(logs), status,
               stacks_limit, spare_delay, std::move(end_politeness)));
  KEEL_TRY_ASSIGN(crew->pump_, OutputPump::Start(files, crew->lost_));
  return crew;
}

Crew::Crew(boost::asio::io_context& loop, const WorkerPlan& plan, Files& files,
           Environment own, Events events, WorkerLogs logs, StatusLine* status,
           Duration stacks_limit, Duration spare_delay, PolitenessEnd end_politeness)
    : loop_(loop),
      plan_(plan),
      files_(files),
      own_(std::move(own)),
      events_(std::move(events)),
      stacks_limit_(stacks_limit),
      end_politeness_(std::move(end_politeness)),
      logs_(std::move(logs)),
      lost_([&loop](const LostBytes& lost) { TellLost(loop, lost); }),
      tail_(files, lost_, STDOUT_FILENO, STDERR_FILENO, status),
      may_be_polite_(CanEndPoliteness()),
      seats_(plan.workers),
      spares_(loop, plan.spares, spare_delay),
      endings_(loop) {}

Crew::~Crew() {
  KillAll();   // all at once, so that they do not end one after the other
  for (Seat& seat : seats_) {
    if (seat.process) seat.process->Forget();
  }
  pump_.reset();
  logs_.RemoveEmpty();
}

// Runs on the loop's thread: the pump's must not wait for the reader of our log.
void Crew::TellLost(boost::asio::io_context& loop, const LostBytes& lost) {
  boost::asio::post(loop, [lost] {
    LogWarn("output-missing",
            {{"from", lost.where}, {"bytes", lost.bytes}, {"reason", lost.why}});
  });
}

Status Crew::Start(WorkerStart start) {
  Seat& seat = seats_[start.index];
  seat = {};
  start.polite &= may_be_polite_;
  const int attempt = start.epoch ? start.epoch->restarts : 0;
  KEEL_TRY_ASSIGN(start.logs, logs_.Prepare(attempt, start.index));
  KEEL_TRY_ASSIGN(ChildSpec spec, MakeChildSpec(plan_, start, own_));
  std::vector<Fd> ends;   // of pipes, until the worker has them
  KEEL_TRY(TakeOutput(start, seat, spec, ends));
  WorkerProcess::Events events;
  const int index = start.index;
  events.on_message = [this, index](const WorkerMessage& message) {
    OnMessage(index, message);
  };
  events.on_link_broken = [this, index](const Error& why) {
    events_.on_link_broken(index, why);
  };
  events.on_end = [this, index](const ExitStatus& status) { OnEnd(index, status); };
  seat.spec = spec;
  const auto starter = [this, &start](const ChildSpec& whole) -> Result<Child> {
    KEEL_TRY_ASSIGN(Spares::Started started, spares_.Start(whole));
    start.polite &= !started.was_spare;
    return std::move(started.child);
  };
  KEEL_TRY_ASSIGN(seat.process, WorkerProcess::Start(loop_, std::move(spec), std::move(events),
                                                     starter));
  seat.pid = seat.process->pid();
  // A machine may have no time left for minutes, and the others lack this worker meanwhile.
  if (start.polite) EndPoliteAfter(seat, kPoliteLimit);
  seat.logs = start.logs;
  return Ok();
}

// What goes to files goes through us: a worker that wrote its file itself could not tell us what a
// full disk does not take, and the console would miss that, too.
Status Crew::TakeOutput(const WorkerStart& start, Seat& seat, ChildSpec& spec,
                        std::vector<Fd>& ends) {
  for (const bool is_stderr : {false, true}) {
    const StreamPlan& plan = is_stderr ? start.logs.err : start.logs.out;
    if (plan.to != StreamPlan::To::kFile) continue;
    KEEL_TRY_ASSIGN(Fd end, TakeStream(plan, is_stderr, start, seat));
    (is_stderr ? spec.err : spec.out) = Stream::Borrowed(end);
    ends.push_back(std::move(end));
  }
  return Ok();
}

Result<Fd> Crew::TakeStream(const StreamPlan& plan, bool is_stderr, const WorkerStart& start,
                            Seat& seat) {
  const auto spool = plan.shown ? std::make_shared<OutputSpool>(kSpoolBytesMax) : nullptr;
  KEEL_TRY_ASSIGN(OutputPump::Source taken, pump_->Open(plan.path, spool));
  seat.streams.push_back(taken.number);
  if (spool) {
    const LogOptions& options = logs_.options();
    TailSource source;
    source.path = plan.path;
    source.prefix = LinePrefix(options, start.index, start.rank);
    source.is_stderr = is_stderr;
    source.filtered_path = plan.filtered_path;
    source.filters = is_stderr ? options.err_filters : options.out_filters;
    source.spool = spool;
    (void)tail_.Follow(std::move(source));
  }
  return std::move(taken.write);
}

void Crew::OnMessage(int index, const WorkerMessage& message) {
  // Who says hello trains in place, and is replaced while the others go on.
  if (std::holds_alternative<HelloMessage>(message)) {
    spares_.MakeFor(seats_[index].spec);
    seats_[index].in_place = true;
    if (!looks_for_endings_) LookForEndings();
  }
  events_.on_message(index, message);
}

void Crew::LookForEndings() {
  looks_for_endings_ = true;
  endings_.expires_after(kEndingLook);
  endings_.async_wait([this](const boost::system::error_code& failure) {
    if (failure) return;
    looks_for_endings_ = false;
    for (size_t index = 0; index < seats_.size(); ++index) {
      Seat& seat = seats_[index];
      if (!seat.process || !seat.in_place) continue;
      looks_for_endings_ = true;
      if (seat.ending_looks >= kEndingTold) continue;
      const std::optional<ExitStatus> ending = EndingOf(seat.pid);
      if (!ending || ++seat.ending_looks < kEndingTold) continue;
      events_.on_ending(static_cast<int>(index), *ending);
    }
    if (looks_for_endings_) LookForEndings();
  });
}

void Crew::OnEnd(int index, const ExitStatus& status) {
  Seat& seat = seats_[index];
  // The files must be complete for whoever hears of the end; only a disk that hangs is not waited
  // for.
  (void)pump_->Finish(seat.streams, RealClock().Monotonic() + kFinishLimit);
  seat.streams.clear();
  seat.stacks.reset();
  seat.polite.reset();
  seat.process.reset();
  events_.on_ended(index, status);
}

void Crew::Send(int index, const SupervisorMessage& message) {
  Seat& seat = seats_[index];
  if (!seat.process) return;
  seat.process->Send(message);
  if (std::holds_alternative<EpochMessage>(message)) EndPolite(seat);
}

void Crew::EndPoliteAfter(Seat& seat, Duration delay) {
  seat.polite = std::make_unique<boost::asio::steady_timer>(loop_, delay);
  seat.polite->async_wait([this, &seat](const boost::system::error_code& failure) {
    if (!failure) EndPolite(seat);
  });
}

void Crew::EndPolite(Seat& seat) {
  if (!std::exchange(seat.polite, nullptr)) return;
  if (!end_politeness_(seat.pid)) EndPoliteAfter(seat, kPoliteAgain);
}

void Crew::Signal(int index, int signal) {
  Seat& seat = seats_[index];
  if (!seat.process || (seat.stacks && signal == SIGKILL)) return;
  seat.process->SignalGroup(signal);
  // A stopped process hears no signal but SIGKILL and SIGCONT.
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
  // It is our child and not reaped, so the process id is still its own.
  ::kill(seat.pid, StackSignal());
  seat.stacks = std::make_unique<boost::asio::steady_timer>(loop_, stacks_limit_);
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
  using Read = Result<std::optional<WorkerError>>;
  auto answer = Within<Read>(kLogFolderLimit, [&files = files_, path = seat.logs.error_file] {
    return ReadErrorFile(files, path);
  });
  Read error = answer ? *std::move(answer)
                      : Error{Code::kTimeout, seat.logs.error_file + " does not answer"};
  if (!error.ok()) {
    LogWarn("error-file", {{"reason", error.error().message}});
  } else if (*error) {
    failure.error_file = seat.logs.error_file;
    failure.error = **std::move(error);
  }
  return failure;
}

bool Crew::ShowRest(TimePoint deadline) {
  const bool is_written = pump_->Stop(deadline);
  if (!is_written) {
    LogWarn("output-not-written", {{"reason", "the log folder " + logs_.run_dir() +
                                                  " does not answer"}});
  }
  const Status shown = tail_.Stop(deadline);
  if (is_written && !shown.ok()) {
    LogWarn("output-not-shown", {{"reason", shown.error().message}});
  }
  return is_written;
}

}  // namespace keel
