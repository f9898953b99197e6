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
#include "elastic/launch/lease.h"
#include "elastic/launch/policies.h"
#include "elastic/launch/terminal_use.h"
#include "elastic/process/descendants.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/report/decision_log.h"
#include "elastic/report/event_log.h"
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
constexpr Duration kReapPause = std::chrono::seconds(5);

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
      wait_timer_(loop_),
      reap_timer_(loop_),
      ledger_(static_cast<size_t>(config_.workers_per_host), Now()),
      figures_(static_cast<size_t>(config_.workers_per_host)),
      story_(config_.run_id, world_.clock.WallNanos()),
      healthy_until_(Now() + kHealthHolds),
      host_(HostConfigFrom(config_, meeting_, incarnation_), world_.random.Fork("host"), Now()) {}

Supervisor::~Supervisor() {
  world_.stores.WhenBroken({});
  if (health_) health_->Forget();
  notices_.reset();
  board_.reset();
  crew_.reset();
}

Status Supervisor::OpenParts() {
  KEEL_TRY(HearSignals());
  KEEL_TRY(OpenPage());
  OpenAlivePort();
  KEEL_TRY(OpenCrew());
  return OpenBoard();
}

Status Supervisor::OpenPage() {
  if (!config_.status) return Ok();
  StatusJob job{config_.run_id, meeting_.own_name, config_.program.name,
                StoreText(), meeting_.server != nullptr, Wall()};
  KEEL_TRY_ASSIGN(page_, StatusServer::Open(*config_.status, JobStatus(std::move(job)),
                                            world_.clock));
  LogInfo("status-page", {{"url", "http://" + page_->where() + "/"},
                          {"token", config_.status->token.empty() ? "none" : "needed"}});
  return Ok();
}

// Another launcher of this machine may have the same environment, and its job must not end by that.
void Supervisor::OpenAlivePort() {
  if (!config_.alive_port) return;
  auto opened = AlivePort::Open(loop_, *config_.alive_port, world_.clock);
  if (!opened.ok()) {
    return LogWarn("health-endpoint-not-opened", {{"reason", opened.error().message}});
  }
  alive_port_ = *std::move(opened);
  LogInfo("health-endpoint", {{"port", alive_port_->port()}});
}

std::string Supervisor::StoreText() const {
  return world_.home != nullptr ? world_.home->Text()
                                : AddressText(meeting_.host, meeting_.port);
}

Status Supervisor::OpenCrew() {
  Crew::Events events;
  events.on_message = [this](int index, const WorkerMessage& message) {
    if (const auto* told = std::get_if<FiguresMessage>(&message)) TakeFigures(index, *told);
    const auto* const saved = std::get_if<SavedMessage>(&message);
    if (saved != nullptr) Tell(CheckpointSaved{saved->step});
    host_.OnWorkerMessage(index, message, Now());
    Carry();
  };
  events.on_link_broken = [this](int index, const Error& why) {
    host_.OnLinkBroken(index, why, Now());
    Carry();
  };
  events.on_ending = [this](int index, const ExitStatus& status) {
    host_.OnWorkerEnding(index, status, Now());
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
  KEEL_TRY_ASSIGN(std::unique_ptr<Lease> lease, OpenLease(config_, world_.random.Fork("lease")));
  Board::Events events;
  events.on_member_event = [this](const MemberEvent& event) { OnMemberEvent(event); };
  events.on_contact = [this](TimePoint beat) {
    has_contact_ = true;
    host_.OnContact(beat);
  };
  events.on_decision = [this](const Decision& decision) {
    LogDecision(decision, Now());
    const bool waits = decision.verdict == Decision::Verdict::kWait &&
                       decision.reason != Reason::kRunning;
    if (waits) Tell(JobWaits{decision.detail});
  };
  if (page_) {
    events.on_hosts = [this](const std::vector<HostView>& hosts) {
      seen_hosts_ = StatusHostsOf(hosts, incarnation_);
    };
  }
  events.on_lost = [this](const std::string& coordinator, int64_t promised, bool refused) {
    host_.OnBoardLost(coordinator, promised, refused, Now());
    Carry();
  };
  events.on_trouble = [this](const Status& status) { OnTrouble(status); };
  events.on_reason = [this](const Error& reason) { OnReason(reason); };
  events.on_no_store = [this](const Error& why) {
    OnNoStore("no store can be used on this host: " + why.message);
  };
  events.on_refused = [this](const Error& why) { OnNoStore(why.message); };
  events.on_finished = [this] { loop_.stop(); };
  std::vector<HostPort> endpoints;
  if (!config_.meets_by_lease) endpoints.push_back({meeting_.host, meeting_.port});
  endpoints.insert(endpoints.end(), config_.more_endpoints.begin(), config_.more_endpoints.end());
  Board::Where where{std::move(endpoints), std::move(meeting_.server),
                           IsAlone(config_),
                           meeting_.peer_port, meeting_.bind, meeting_.own_address,
                           incarnation_, std::move(lease), MayOpenBeside(config_), world_.home,
                           world_.seal, WorkersMeet(config_, meeting_)};
  KEEL_TRY_ASSIGN(board_, Board::Open(loop_, world_.clock, world_.stores, std::move(where),
                                      MemberConfigFrom(config_), JobPolicyFrom(config_),
                                      world_.random.Fork("coordinator"), std::move(events)));
  world_.stores.WhenBroken([this](const Error& why) {
    boost::asio::post(loop_, [this, why] {
      OnNoStore("no store can be used on this host: " + why.message);
    });
  });
  return Ok();
}

int Supervisor::Run() {
  LogInfo("job-started", {{"job", config_.run_id},
                          {"store", StoreText()},
                          {"hosted_here", board_->coordinates()},
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
  TellWait();
  ReapLost();
  Carry();
  loop_.run();
  page_.reset();
  notices_.reset();
  HoldSignals();
  if (status_) status_->Hide();
  board_.reset();
  crew_->KillAll();
  if (health_) health_->Forget();
  show_by_ = Now() + kShowLimit;
  has_silent_logs_ = !crew_->ShowRest(show_by_);
  story_.OnLostOutput(crew_->lost_output());
  if (!has_silent_logs_) crew_.reset();
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

// --- What happens ---

void Supervisor::OnMemberEvent(const MemberEvent& event) {
  if (const auto* const given = std::get_if<Registered>(&event)) {
    trouble_.clear();
    slot_ = given->slot;
    Tell(*given);
  }
  if (const auto* const seen = std::get_if<EpochSeen>(&event)) Tell(*seen);
  if (const auto* const broken = std::get_if<BreakSeen>(&event)) Tell(*broken);
  if (const auto* const stop = std::get_if<StopSeen>(&event)) Tell(*stop);
  if (const auto* const seen = std::get_if<ShunnedSeen>(&event)) TellShunned(seen->record);
  host_.OnMemberEvent(event, Now());
  Carry();
}

// Each one once, whatever board names it.
void Supervisor::TellShunned(const ShunnedRecord& record) {
  for (const ShunnedHost& one : record.hosts) {
    if (!shunned_told_.insert(one.incarnation).second) continue;
    Tell(HostShunned{one.host, one.reason, one.incarnation == incarnation_});
  }
}

void Supervisor::OnTrouble(const Status& status) {
  trouble_ = status.ok() ? "" : status.error().message;
  if (status.ok()) return Tell(StoreReached{});
  Tell(StoreLost{trouble_});
}

// There may be one for each attempt, so TellWait() tells the newest, and so does the end.
void Supervisor::OnReason(const Error& reason) {
  trouble_ = reason.message;
  LogDebug("store-unreachable-still", {{"reason", trouble_}});
}

// Without this the workers would wait for the store for ever, and we for them.
void Supervisor::OnNoStore(const std::string& reason) {
  if (std::exchange(no_store_, true)) return;
  Tell(NoStore{reason});
  host_.OnNoStore(reason, Now());
  Carry();
}

void Supervisor::OnWorkerEnded(int index, const ExitStatus& status) {
  healthy_until_ = {};   // its machine may be the reason
  const MemberRecord before = host_.record();
  const SeatRecord& seat = before.seats[index];
  const std::string who = host_.RankText(index);   // of this one, not of its successor
  const std::string how = host_.OnWorkerEnded(index, status, Now());
  const bool failed = host_.record().deaths > before.deaths;
  WorkerFailure failure = crew_->Describe(index, seat.rank, status, Wall());
  failure.host = meeting_.own_name;
  if (failed) {
    const bool in_place = host_.record().kind == JobKind::kInPlace;
    Tell(WorkerFailed{who, how, std::move(failure), seat.epoch, seat.position.step, in_place});
  } else {
    WorkerEnded ended{who, how, seat.rank, failure.pid, {}, seat.epoch};
    if (status.kind == ExitStatus::Kind::kSignalled) ended.stopped = std::move(failure);
    Tell(std::move(ended));
  }
  Carry();
}

void Supervisor::WatchNotices() {
  if (config_.notices.clouds.empty() && !config_.notices.known_end) return;
  notices_ = std::make_unique<NoticePoller>(loop_, world_.clock, config_.notice_base,
                                            config_.notices,
                                            [this](const NoticeEvent& event) { OnNotice(event); });
}

void Supervisor::OnNotice(const NoticeEvent& event) {
  if (event.kind != NoticeEvent::Kind::kLeave) return Tell(event);
  const Duration to_save = TimeToSave(event.left);
  const std::string reason = event.text + ", in " + DurationText(event.left);
  Tell(NoticeObeyed{event.text, event.left, to_save,
                    reason + ", to the launcher on " + meeting_.own_name});
  host_.OnStopAsked(reason, to_save, Now());
  Carry();
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

void Supervisor::Tell(const LauncherEvent& event) {
  LogEvent(event);
  story_.On(event, Wall());
  if (!page_) return;
  page_->Post([event, at = Wall()](JobStatus& status) { status.On(event, at); });
}

// A wait that lasts is told again and again, with its newest reason and what would end it.
void Supervisor::TellWait() {
  const TimePoint now = Now();
  const std::optional<HostWait> wait = host_.WaitsFor(now);
  if (wait && now - wait->since >= kWaitTold) {
    std::optional<Duration> left;
    if (wait->until != kNever) left = wait->until - now;
    const std::string what = wait->what + (trouble_.empty() ? "" : ": " + trouble_);
    Tell(HostWaits{what, now - wait->since, left, wait->cure});
  }
  wait_timer_.expires_after(wait && now - wait->since < kWaitTold ? wait->since + kWaitTold - now
                                                                  : kWaitTold);
  wait_timer_.async_wait([this](const error_code& failure) {
    if (!failure) TellWait();
  });
}

void Supervisor::ReapLost() {
  lost_children_.Reap();
  reap_timer_.expires_after(kReapPause);
  reap_timer_.async_wait([this](const error_code& failure) {
    if (!failure) ReapLost();
  });
}

// --- For the status page ---

// Our own record is newer here than on the board.
void Supervisor::TellHosts() {
  const bool sees_all = board_->coordinates();
  if (!sees_all) seen_hosts_.clear();   // of a board that was left
  std::vector<StatusHost> hosts = seen_hosts_;
  const auto own = std::find_if(hosts.begin(), hosts.end(), [this](const StatusHost& host) {
    return host.is_here && host.gone.empty() && host.slot == slot_;
  });
  if (own == hosts.end()) {
    hosts.push_back({slot_, true, "", host_.record()});
  } else {
    own->record = host_.record();
  }
  const std::string store = world_.home != nullptr ? world_.home->Text() : board_->Target();
  page_->Post([hosts = std::move(hosts), sees_all, store, at = Wall()](JobStatus& status) mutable {
    status.OnRole(sees_all, store);
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
