// Each thing that happens goes to the Host; then its actions are carried out
// (supervisor_actions.cc), and the timer is set.
#include "elastic/supervisor.h"

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "elastic/doctor/findings.h"
#include "elastic/doctor/text.h"
#include "elastic/launch/policies.h"
#include "elastic/launch/terminal_use.h"
#include "elastic/process/descendants.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/report/decision_log.h"
#include "store/host_port.h"

namespace keel {
namespace {

using boost::system::error_code;

// For processes that were killed to be gone, and for the console to take what they wrote.
constexpr Duration kKillLimit = std::chrono::seconds(10);
constexpr Duration kShowLimit = std::chrono::seconds(30);
constexpr Duration kLogLimit = std::chrono::seconds(1);
constexpr Duration kStatusPeriod = std::chrono::seconds(1);
constexpr Duration kPagePeriod = std::chrono::milliseconds(500);
// No scheduler warns earlier than this; a signal by hand may come at any time.
constexpr Duration kLongestWarning = std::chrono::minutes(15);
constexpr Duration kNowLimit = std::chrono::seconds(2);
constexpr const char* kHowToKill = "press Ctrl-C twice within 2 s to kill at once";

// Schedulers announce the end with SIGUSR1. If nobody listened, it would end only this launcher.
std::vector<int> SignalsHeard(const LaunchConfig& config) {
  std::vector<int> signals = config.signals;
  signals.insert(signals.end(), {SIGUSR1, SIGUSR2});
  return signals;
}

// Whether --signals-to-handle names it.
bool IsNamed(const LaunchConfig& config, int signal) {
  return std::count(config.signals.begin(), config.signals.end(), signal) > 0;
}

// The words in front of what a notice is about.
std::string NoticeKindText(NoticeEvent::Kind kind) {
  switch (kind) {
    using Kind = NoticeEvent::Kind;
    case Kind::kFound: return "watching those of ";
    case Kind::kHint: return "hint: ";
    case Kind::kAnnounced: return "announced: ";
    case Kind::kWithdrawn: return "withdrawn: ";
    case Kind::kUnreachable: return "unreachable: ";
    case Kind::kReached: return "reached again: ";
    case Kind::kGaveUp: return "nobody is asked any more: ";
    case Kind::kLeave: return "obeyed: ";
  }
  return "";
}

// Foreign workers expect those signals that --signals-to-handle names, and no others.
int ForWorkers(const LaunchConfig& config, int signal) {
  return IsNamed(config, signal) ? signal : SIGTERM;
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::Open(LaunchConfig config, SupervisorWorld world) {
  KEEL_TRY(BecomeSubreaper());
  KEEL_TRY_ASSIGN(Meeting meeting, OpenMeeting(config, world.stores));
  // Event loops throw if the system gives them no descriptor.
  try {
    std::unique_ptr<Supervisor> supervisor(
        new Supervisor(std::move(config), std::move(world), std::move(meeting)));
    KEEL_TRY(supervisor->OpenParts());
    return supervisor;
  } catch (const boost::system::system_error& failed) {
    return Error{Code::kForeign, std::string("starting the launcher: ") + failed.what()};
  }
}

Supervisor::Supervisor(LaunchConfig config, SupervisorWorld world, Meeting meeting)
    : config_(std::move(config)),
      world_(std::move(world)),
      meeting_(std::move(meeting)),
      incarnation_(RandomId(world_.random, 16)),
      signals_(loop_),
      timer_(loop_),
      kill_timer_(loop_),
      status_timer_(loop_),
      page_timer_(loop_),
      ledger_(static_cast<size_t>(config_.workers_per_host), Now()),
      figures_(static_cast<size_t>(config_.workers_per_host)),
      story_(config_.run_id, world_.clock.WallNanos()),
      host_(HostConfigFrom(config_, meeting_, incarnation_), world_.random.Fork("host"), Now()) {}

Supervisor::~Supervisor() {
  world_.stores.WhenBroken({});
  notices_.reset();
  board_.reset();
  crew_.reset();
}

Status Supervisor::OpenParts() {
  error_code failure;
  for (const int signal : SignalsHeard(config_)) signals_.add(signal, failure);
  if (failure) return Error{Code::kForeign, "listening for signals: " + failure.message()};
  KEEL_TRY(OpenPage());
  KEEL_TRY(OpenCrew());
  return OpenBoard();
}

Status Supervisor::OpenPage() {
  if (!config_.status) return Ok();
  StatusJob job{config_.run_id, meeting_.own_name, config_.program.name,
                AddressText(meeting_.host, meeting_.port), meeting_.server != nullptr, Wall()};
  KEEL_TRY_ASSIGN(page_, StatusServer::Open(*config_.status, JobStatus(std::move(job)),
                                            world_.clock));
  LogInfo("status-page", {{"url", "http://" + page_->where() + "/"},
                          {"token", config_.status->token.empty() ? "none" : "needed"}});
  return Ok();
}

Status Supervisor::OpenCrew() {
  Crew::Events events;
  events.on_message = [this](int index, const WorkerMessage& message) {
    if (const auto* told = std::get_if<FiguresMessage>(&message)) TakeFigures(index, *told);
    const auto* const saved = std::get_if<SavedMessage>(&message);
    if (saved != nullptr && page_) {
      page_->Post([step = saved->step, at = Wall()](JobStatus& s) { s.OnSaved(step, at); });
    }
    host_.OnWorkerMessage(index, message, Now());
    Carry();
  };
  events.on_link_broken = [this](int index, const Error& why) {
    host_.OnLinkBroken(index, why, Now());
    Carry();
  };
  events.on_ended = [this](int index, const ExitStatus& status) { OnWorkerEnded(index, status); };
  const auto terminal = world_.environment.find("TERM");
  const bool drawn =
      terminal != world_.environment.end() && WantsStatusLine(config_, terminal->second);
  if (drawn || NeedsOneWriter(config_)) status_.emplace(drawn);
  KEEL_TRY_ASSIGN(crew_,
                  Crew::Open(loop_, WorkerPlanFrom(config_), world_.files, world_.random,
                             world_.environment, std::move(events),
                             status_ ? &*status_ : nullptr));
  return Ok();
}

Status Supervisor::OpenBoard() {
  Board::Events events;
  events.on_member_event = [this](const MemberEvent& event) { OnMemberEvent(event); };
  events.on_contact = [this](TimePoint beat) {
    has_contact_ = true;
    host_.OnContact(beat);
  };
  events.on_decision = [this](const Decision& decision) {
    LogDecision(decision);
    const bool waits = decision.verdict == Decision::Verdict::kWait &&
                       decision.reason != Reason::kRunning;
    if (waits) Tell("waiting", decision.detail);
  };
  if (page_) {
    events.on_hosts = [this](const std::vector<HostView>& hosts) {
      seen_hosts_ = StatusHostsOf(hosts, incarnation_);
    };
  }
  events.on_trouble = [this](const Status& status) { OnTrouble(status); };
  events.on_no_store = [this](const Error& why) { OnNoStore(why); };
  events.on_finished = [this] { loop_.stop(); };
  const Board::Where where{meeting_.host, meeting_.port, meeting_.server != nullptr,
                           config_.meeting == LaunchConfig::Meeting::kStandalone,
                           meeting_.own_address, incarnation_};
  KEEL_TRY_ASSIGN(board_, Board::Open(loop_, world_.clock, world_.stores, where,
                                      MemberConfigFrom(config_), JobPolicyFrom(config_),
                                      world_.random.Fork("coordinator"), std::move(events)));
  world_.stores.WhenBroken([this](const Error& why) {
    boost::asio::post(loop_, [this, why] { OnNoStore(why); });
  });
  return Ok();
}

int Supervisor::Run() {
  LogInfo("job-started", {{"job", config_.run_id},
                          {"store", AddressText(meeting_.host, meeting_.port)},
                          {"hosted_here", meeting_.server != nullptr},
                          {"address", meeting_.own_address},
                          {"workers", config_.workers_per_host}});
  if (config_.hosts.most > 1) {
    LogFindings(BriefFindings(BriefFacts(config_, world_.environment, meeting_.own_name,
                                         meeting_.own_address)));
  }
  if (status_) ShowStatus();
  AwaitSignal();
  WatchNotices();
  if (page_) TellHosts();
  Carry();
  loop_.run();
  page_.reset();
  notices_.reset();
  HoldSignals();
  if (status_) status_->Hide();
  board_.reset();
  crew_->KillAll();
  show_by_ = Now() + kShowLimit;
  crew_->ShowRest(show_by_);
  story_.OnLostOutput(crew_->lost_output());
  crew_.reset();
  const auto left = KillDescendants(Now() + kKillLimit);
  if (!left.ok()) LogError("processes-left", {{"reason", left.error().message}});
  if (left.ok()) {
    for (const KilledProcess& process : *left) {
      LogWarn("leftover-killed", {{"pid", process.pid}, {"command", process.command}});
    }
  }
  show_by_ = std::max(show_by_, Now() + kLogLimit);
  if (status_) (void)status_->Flush(show_by_);
  return exit_code_.value_or(kExitUnsaved);
}

// The end is decided, so a signal that comes now changes nothing. If it were delivered, it would
// replace our exit code, so it stays pending here; our other threads block signals anyway.
void Supervisor::HoldSignals() const {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : SignalsHeard(config_)) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

// --- What happens ---

void Supervisor::OnMemberEvent(const MemberEvent& event) {
  if (const auto* given = std::get_if<Registered>(&event)) {
    trouble_.clear();
    slot_ = given->slot;
    LogInfo("registered", {{"slot", given->slot}});
  }
  if (const auto* seen = std::get_if<EpochSeen>(&event)) {
    LogInfo("epoch", {{"epoch", seen->epoch.number},
                      {"workers", seen->epoch.workers.size()},
                      {"hosts", seen->epoch.hosts.size()},
                      {"reason", seen->epoch.reason}});
    story_.OnEpoch(seen->epoch, Wall());
    if (page_) {
      page_->Post([epoch = seen->epoch, at = Wall()](JobStatus& s) { s.OnEpoch(epoch, at); });
    }
  } else if (const auto* broken = std::get_if<BreakSeen>(&event)) {
    LogWarn("epoch-broken", {{"epoch", broken->record.epoch},
                             {"cause", BreakCauseName(broken->record.cause)},
                             {"reason", broken->record.reason}});
    story_.OnBreak(broken->record, Wall());
    if (page_) {
      page_->Post([record = broken->record, at = Wall()](JobStatus& s) { s.OnBreak(record, at); });
    }
  } else if (const auto* stop = std::get_if<StopSeen>(&event)) {
    LogInfo("job-stops", {{"reason", stop->stop.reason}});
    story_.OnJobStops(stop->stop.reason, Wall());
    Tell("stop", stop->stop.reason);
  }
  host_.OnMemberEvent(event, Now());
  Carry();
}

void Supervisor::OnTrouble(const Status& status) {
  trouble_ = status.ok() ? "" : status.error().message;
  Tell(status.ok() ? "store-reached" : "store-lost", trouble_);
  if (status.ok()) return LogInfo("store-reached");
  LogWarn("store-unreachable", {{"reason", trouble_}});
}

// Without this the workers would wait for the store for ever, and we for them.
void Supervisor::OnNoStore(const Error& why) {
  no_store_ = true;
  const std::string reason = "no store can be used on this host: " + why.message;
  Tell("no-store", reason);
  host_.OnNoStore(reason, Now());
  Carry();
}

void Supervisor::OnWorkerEnded(int index, const ExitStatus& status) {
  const MemberRecord before = host_.record();
  const SeatRecord& seat = before.seats[index];
  const std::string who = host_.RankText(index);   // of this one, not of its successor
  const std::string how = host_.OnWorkerEnded(index, status, Now());
  const bool failed = host_.record().deaths > before.deaths;
  WorkerFailure failure = crew_->Describe(index, seat.rank, status, Wall());
  failure.host = meeting_.own_name;
  Tell(failed ? "death" : "worker-ended", who + " " + how);
  if (failed) {
    LogError("worker-died", {{"rank", seat.rank},
                             {"local_rank", index},
                             {"pid", failure.pid},
                             {"how", how},
                             {"error", failure.error ? failure.error->message : ""},
                             {"step", seat.position.step}});
    if (host_.record().kind == JobKind::kInPlace) {
      story_.OnDeath(who + " " + how, Wall());
    }
    story_.OnFailure(std::move(failure), seat.epoch);
  } else {
    LogInfo("worker-ended", {{"rank", seat.rank}, {"pid", failure.pid}, {"how", how}});
  }
  Carry();
}

void Supervisor::AwaitSignal() {
  signals_.async_wait([this](const error_code& failure, int signal) {
    if (failure) return;
    OnSignal(signal);
    AwaitSignal();
  });
}

void Supervisor::OnSignal(int signal) {
  // If --signals-to-handle names it, it is a wish to stop like any other.
  if (signal == SIGUSR2 && !IsNamed(config_, signal)) {
    LogInfo("save-wanted", {{"signal", SignalName(signal)}});
    Tell("save-wanted", SignalName(signal));
    host_.OnSaveAsked(SignalName(signal) + " to the launcher on " + meeting_.own_name, Now());
    return Carry();
  }
  const Duration to_save = TimeToStop(signal);
  LogWarn("signal", {{"signal", SignalName(signal)}, {"to_save", DurationText(to_save)}});
  if (signal == SIGINT && !IsFirstInterrupt()) return;
  Tell("stop", SignalName(signal) + " to the launcher on " + meeting_.own_name);
  story_.OnStop(SignalName(signal) + " to the launcher on " + meeting_.own_name, Wall());
  host_.OnStopAsked(SignalName(signal), to_save, Now(), ForWorkers(config_, signal));
  Carry();
  if (status_) ShowStatus();
}

// False if this is not the first one: a second one in time kills, a later one changes nothing.
bool Supervisor::IsFirstInterrupt() {
  const bool is_first = !std::exchange(interrupted_, true);
  if (interrupts_.IsSecond(Now())) {
    KillNow();
    return false;
  }
  if (!is_first) LogWarn("stopping-already", {{"reason", kHowToKill}});
  return is_first;
}

// If a scheduler sends SIGUSR1 ahead of a known end, all the time until then is left.
Duration Supervisor::TimeToStop(int signal) {
  if (signal != SIGUSR1 || !config_.notices.known_end) return config_.shutdown_limit;
  const Duration left(*config_.notices.known_end - Wall());
  const bool is_near = left > Duration(0) && left <= kLongestWarning;
  return is_near ? TimeToSave(left) : config_.shutdown_limit;
}

void Supervisor::WatchNotices() {
  if (config_.notices.clouds.empty() && !config_.notices.known_end) return;
  notices_ = std::make_unique<NoticePoller>(loop_, world_.clock, config_.notice_base,
                                            config_.notices,
                                            [this](const NoticeEvent& event) { OnNotice(event); });
}

void Supervisor::OnNotice(const NoticeEvent& event) {
  const std::string& what = event.text;
  const std::string left = DurationText(event.left);
  Tell("notice", NoticeKindText(event.kind) + what);
  switch (event.kind) {
    using Kind = NoticeEvent::Kind;
    case Kind::kFound: return LogInfo("notices-watched", {{"of", what}});
    case Kind::kHint: return LogInfo("notice-hint", {{"what", what}});
    case Kind::kAnnounced:
      LogWarn("notice", {{"what", what}, {"left", left}});
      if (!event.note.empty()) LogWarn("notice-time-doubted", {{"reason", event.note}});
      return;
    case Kind::kWithdrawn: return LogInfo("notice-withdrawn", {{"what", what}});
    case Kind::kUnreachable: return LogWarn("notices-unreachable", {{"reason", what}});
    case Kind::kReached: return LogInfo("notices-reached", {{"of", what}});
    case Kind::kGaveUp: return LogInfo("notices-not-watched", {{"reason", what}});
    case Kind::kLeave: break;
  }
  const Duration to_save = TimeToSave(event.left);
  LogWarn("notice-obeyed", {{"what", what}, {"left", left}, {"to_save", DurationText(to_save)}});
  const std::string reason = what + ", " + left + " ahead";
  story_.OnStop(reason + ", to the launcher on " + meeting_.own_name, Wall());
  host_.OnStopAsked(reason, to_save, Now());
  Carry();
}

// A user who interrupts twice does not want to wait for anything.
void Supervisor::KillNow() {
  if (std::exchange(killing_, true)) return;
  LogWarn("killing-all", {{"reason", "interrupted twice"}});
  // It is told at the end, too: a further Ctrl-C may discard this line from the terminal.
  story_.OnStop("interrupted twice, so everything was killed", Wall());
  crew_->KillAll();
  kill_timer_.expires_after(kNowLimit);
  kill_timer_.async_wait([this](const error_code& failure) {
    if (failure) return;
    EndStory(kExitUnsaved, "interrupted twice");
    loop_.stop();
  });
}

void Supervisor::ArmTimer() {
  const TimePoint wake = host_.NextWake();
  if (wake == kNever) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::max(wake - Now(), Duration(0)));
  timer_.async_wait([this](const error_code& failure) {
    if (failure) return;
    host_.OnTime(Now());
    Carry();
  });
}

void Supervisor::ShowStatus() {
  status_->Show(StatusText(host_.record(), host_.epoch()));
  status_timer_.expires_after(kStatusPeriod);
  status_timer_.async_wait([this](const error_code& failure) {
    if (!failure) ShowStatus();
  });
}

// --- For the status page ---

void Supervisor::Tell(const std::string& kind, const std::string& text) {
  if (!page_) return;
  page_->Post([kind, text, at = Wall()](JobStatus& status) { status.OnEvent(kind, text, at); });
}

// Our own record is newer here than on the board.
void Supervisor::TellHosts() {
  std::vector<StatusHost> hosts = seen_hosts_;
  const auto own = std::find_if(hosts.begin(), hosts.end(), [this](const StatusHost& host) {
    return host.is_here && host.gone.empty() && host.slot == slot_;
  });
  if (own == hosts.end()) {
    hosts.push_back({slot_, true, "", host_.record()});
  } else {
    own->record = host_.record();
  }
  page_->Post([hosts = std::move(hosts), at = Wall()](JobStatus& status) mutable {
    status.OnHosts(std::move(hosts), at);
  });
  TellFigures();
  page_timer_.expires_after(kPagePeriod);
  page_timer_.async_wait([this](const error_code& failure) {
    if (!failure) TellHosts();
  });
}

void Supervisor::TakeFigures(int index, const FiguresMessage& figures) {
  const SeatRecord& seat = host_.record().seats[static_cast<size_t>(index)];
  if (!HasProcess(seat.state)) return;
  ledger_.OnFigures(static_cast<size_t>(index), figures);
  figures_[static_cast<size_t>(index)] =
      StatusFigures{static_cast<size_t>(index), seat.rank, seat.worker, figures};
}

// The figures of those workers that are still there.
void Supervisor::TellFigures() {
  std::vector<StatusFigures> figures;
  for (const auto& told : figures_) {
    if (!told) continue;
    const SeatRecord& seat = host_.record().seats[told->index];
    if (seat.worker != told->worker || !HasProcess(seat.state)) continue;
    figures.push_back(*told);
    figures.back().rank = seat.rank;
  }
  std::sort(figures.begin(), figures.end(), [](const StatusFigures& a, const StatusFigures& b) {
    return a.rank < b.rank;
  });
  page_->Post([figures = std::move(figures), time = ledger_.Sum(Now()),
               at = Wall()](JobStatus& status) { status.OnFigures(figures, time, at); });
}

}  // namespace keel
