// Carries out what the Host wants. What happens to the supervisor is in supervisor.cc.
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "elastic/launch/meeting.h"
#include "elastic/launch/policies.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/supervisor.h"
#include "store/host_port.h"

namespace keel {

// An action that is carried out may make another one necessary. That one waits for its turn.
void Supervisor::Carry() {
  if (std::exchange(carrying_, true)) return;
  for (;;) {
    const std::vector<HostAction> actions = host_.TakeActions();
    if (actions.empty()) break;
    for (const HostAction& action : actions) {
      std::visit([&](const auto& what) { Do(what, action.why); }, action.what);
    }
  }
  carrying_ = false;
  ledger_.OnSeats(host_.record().seats, Now());
  if (has_started_) world_.stores.Prepare();
  ArmTimer();
}

void Supervisor::Do(const StartWorker& action, const std::string& why) {
  const bool is_fit = config_.health_command.empty() || (!health_ && Now() < healthy_until_);
  if (is_fit) return StartNow({action, why});
  wanted_.push_back({action, why});
  if (!health_) CheckHealth();
}

void Supervisor::CheckHealth() {
  checked_ = std::exchange(wanted_, {});
  check_began_ = Now();
  healthy_until_ = kNever;
  health_ = HealthCheck::Start(loop_, HealthPlanFrom(config_, world_.environment),
                               [this](const HealthOutcome& outcome) { OnHealth(outcome); });
}

void Supervisor::OnHealth(const HealthOutcome& outcome) {
  using Verdict = HealthOutcome::Verdict;
  health_.reset();
  const bool is_fit = outcome.verdict == Verdict::kFit;
  Tell(HealthChecked{is_fit, outcome.reason, Now() - check_began_});
  if (is_fit) {
    ReleaseStarts();
  } else {
    const int code = outcome.verdict == Verdict::kUnfit ? kExitShunned : kExitFailed;
    host_.OnUnfit(outcome.reason, code, Now());
  }
  Carry();
}

// If a worker has ended while the check ran, those that were wanted since then need another one.
void Supervisor::ReleaseStarts() {
  const bool holds = healthy_until_ == kNever;
  std::vector<WantedStart> released = std::exchange(checked_, {});
  if (holds) {
    healthy_until_ = Now() + kHealthHolds;
    released.insert(released.end(), wanted_.begin(), wanted_.end());
    wanted_.clear();
  }
  for (const WantedStart& wanted : released) {
    host_.OnFit(wanted.action.index, Now());
    StartNow(wanted);
  }
  if (!wanted_.empty()) CheckHealth();
}

// A worker that waits for the check has no process that could hear a signal.
bool Supervisor::DropStart(int index) {
  const auto is_it = [&](const WantedStart& wanted) { return wanted.action.index == index; };
  return std::erase_if(wanted_, is_it) + std::erase_if(checked_, is_it) > 0;
}

void Supervisor::StartNow(const WantedStart& wanted) {
  const StartWorker& action = wanted.action;
  WorkerStart start;
  start.index = action.index;
  start.epoch = action.epoch;
  start.rank = action.rank;
  start.polite = action.polite;
  if (action.epoch) {
    for (const EpochHost& host : action.epoch->hosts) {
      if (host.incarnation == incarnation_) start.slot = host.slot;
    }
  }
  const Status started = crew_->Start(std::move(start));
  if (started.ok()) {
    has_started_ = true;
    LogDebug("worker-started",
             {{"rank", action.rank}, {"local_rank", action.index}, {"for", wanted.why}});
    return;
  }
  LogError("worker-not-started",
           {{"local_rank", action.index}, {"reason", started.error().message}});
  host_.OnStartFailed(action.index, started.error().message, Now());
}

void Supervisor::Do(const EnterEpoch& action, const std::string&) {
  const EpochRecord& epoch = action.epoch;
  EpochMessage message;
  message.epoch = epoch.number;
  message.rank = action.rank;
  message.world = static_cast<int>(epoch.workers.size());
  message.address = epoch.store.address;
  message.port = static_cast<uint16_t>(epoch.store.port);
  message.prefix = epoch.store.prefix;
  message.reason = epoch.reason;
  message.first = epoch.first;
  message.inexact_allowed = epoch.inexact_allowed;
  message.own_address = meeting_.own_address;
  message.own_host = host_.record().host;
  if (world_.seal) message.seal = HexText(world_.seal->For({"epoch", epoch.id}).secret());
  for (const EpochWorker& worker : epoch.workers) {
    message.members.push_back("host" + std::to_string(worker.slot) + "/" +
                              std::to_string(worker.index));
  }
  crew_->Send(action.index, message);
}

void Supervisor::Do(const SendToWorker& action, const std::string&) {
  crew_->Send(action.index, action.message);
}

void Supervisor::Do(const SignalWorker& action, const std::string& why) {
  if (action.dump_stacks) return crew_->DumpStacks(action.index);
  if (DropStart(action.index)) return host_.OnNotStarted(action.index, Now());
  LogInfo("worker-signalled", {{"rank", host_.record().seats[action.index].rank},
                               {"local_rank", action.index},
                               {"signal", SignalName(action.signal)},
                               {"reason", why}});
  crew_->Signal(action.index, action.signal);
}

void Supervisor::Do(const Publish& action, const std::string&) {
  board_->Publish(host_.record(), host_.counted(), action.hurry);
}

void Supervisor::Do(const ReportBreak& action, const std::string&) {
  board_->ReportBreak(action.record);
}

void Supervisor::Do(const RegisterAnew&, const std::string& why) {
  Tell(RegistersAnew{why});
  board_->RegisterAnew();
}

void Supervisor::Do(const ExitHost& action, const std::string& why) {
  if (exit_code_) return;
  exit_code_ = action.code;
  std::string outcome = why;
  if (action.code == kExitQuorumLost) {
    outcome += "; the store is at " + board_->Target();
    // The last attempt may not have ended yet, so WhyUnreachable() looks once more.
    const bool is_first =
        world_.home == nullptr && board_->Target() == AddressText(meeting_.host, meeting_.port);
    if (!is_first && !trouble_.empty()) {
      outcome += ": " + trouble_;
    } else if (world_.home == nullptr && (!trouble_.empty() || !has_contact_)) {
      outcome += ": " + WhyUnreachable(meeting_, board_->coordinates(), trouble_);
    }
  }
  EndStory(action.code, outcome);
  // Where there is no store nobody can be told anything, and the machine costs money until the end.
  const bool gave_up = action.code == kExitQuorumLost || action.code == kExitFinished;
  const bool can_tell = board_->coordinates() && !board_->is_cut_off();
  const bool is_cut_off = gave_up && !trouble_.empty() && !can_tell;
  board_->Finish(no_store_ || is_cut_off);
}

void Supervisor::EndStory(int code, const std::string& outcome) {
  ledger_.OnEnd(Now());
  story_.OnTime(ledger_.Sum(Now()));
  story_.OnBlame(host_.record().blame, host_.record().health);
  Tell(LauncherEnds{code, outcome});
}

}  // namespace keel
