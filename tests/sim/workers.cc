// What simulated workers do: start, train together, park, save, finish, and all that may go wrong.
#include "tests/sim/workers.h"

#include <signal.h>

#include <algorithm>
#include <vector>

#include "elastic/decisions/hangs.h"
#include "elastic/protocol/exit_codes.h"
#include "tests/sim/host_clock.h"

namespace keel {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kSaveEvery = 5;

std::string Name(const SimWorker& worker) {
  return "worker " + std::to_string(worker.place.host) + "." + std::to_string(worker.place.seat) +
         " " + worker.place.worker.substr(0, 4);
}

}  // namespace

SimWorkers::SimWorkers(Scheduler& scheduler, const Scenario& scenario, WorkerOwner& owner,
                       WorkerWatcher& watcher)
    : scheduler_(scheduler),
      scenario_(scenario),
      owner_(owner),
      watcher_(watcher),
      random_(Random(scenario.seed).Fork("workers")) {}

SimWorker* SimWorkers::Find(const WorkerPlace& place) {
  for (const auto& worker : workers_) {
    if (worker->alive && worker->place.worker == place.worker) return worker.get();
  }
  return nullptr;
}

// Nothing goes wrong any more when the faults have ceased.
bool SimWorkers::Happens(double chance) {
  return random_.Chance(chance) && scheduler_.now().since_start < scenario_.quiet_after;
}

// Around the usual time, and now and then much longer.
Duration SimWorkers::Some(Duration usual) {
  const Duration usually = usual / 2 + Duration(random_.Uniform(usual.count() + 1));
  return Happens(scenario_.slow) ? 20 * usually : usually;
}

void SimWorkers::Later(SimWorker& worker, Duration delay, std::function<void()> work) {
  scheduler_.After(delay, Scheduler::kNobody, [&worker, work = std::move(work)] {
    if (worker.alive && !worker.hung) work();
  });
}

// What one process says arrives in order.
void SimWorkers::Say(SimWorker& worker, WorkerMessage message) {
  worker.last_words = std::max(worker.last_words, scheduler_.now() + Some(100us));
  scheduler_.At(worker.last_words, Scheduler::kNobody,
                [this, place = worker.place, message = std::move(message)] {
                  owner_.WorkerSays(place, message);
                });
}

void SimWorkers::Die(SimWorker& worker, const ExitStatus& status) {
  if (!worker.alive) return;
  watcher_.Trace(Name(worker) + " " + status.Text());
  worker.alive = false;
  LeaveGroup(worker);
  worker.last_words = std::max(worker.last_words, scheduler_.now() + Some(100us));
  if (random_.Chance(0.2)) {   // it has much memory to free
    worker.last_words = worker.last_words + Some(30ms);
    scheduler_.At(worker.last_words, Scheduler::kNobody,
                  [this, place = worker.place, status] { owner_.WorkerEnding(place, status); });
    worker.last_words = worker.last_words + Some(300ms);
  }
  scheduler_.At(worker.last_words, Scheduler::kNobody,
                [this, place = worker.place, status] { owner_.WorkerEnded(place, status); });
}

void SimWorkers::EndSoon(SimWorker& worker, Duration delay, const ExitStatus& status) {
  Later(worker, delay, [this, &worker, status] { Die(worker, status); });
}

void SimWorkers::Start(const WorkerPlace& place, const std::optional<EpochRecord>& epoch,
                       int rank) {
  workers_.push_back(std::make_unique<SimWorker>());
  SimWorker& worker = *workers_.back();
  worker.number = workers_.size();
  worker.place = place;
  worker.in_place = scenario_.in_place;
  worker.odd = place.host == scenario_.odd_host;
  worker.ignores_term = Happens(scenario_.slow);
  watcher_.Trace(Name(worker) + " starts" +
                 (epoch ? " for epoch " + std::to_string(epoch->number) : std::string()));
  if (Happens(scenario_.start_failure)) {
    ++own_deaths_;
    EndSoon(worker, Some(50ms), ExitStatus::Exited(3));
  }
  if (!worker.in_place) {
    Enter(worker, *epoch, rank);
    return;
  }
  Later(worker, Some(20ms), [this, &worker] {
    worker.said_hello = true;
    Say(worker, HelloMessage{kControlVersion, worker.odd ? "other" : "same"});
    Later(worker, Some(200ms), [this, &worker] { Say(worker, ReadyMessage{-1}); });
  });
}

void SimWorkers::Deliver(const WorkerPlace& place, const SupervisorMessage& message) {
  Hear(place, [this, message](SimWorker& worker) {
    std::visit([&](const auto& one) { On(worker, one); }, message);
  });
}

void SimWorkers::Deliver(const WorkerPlace& place, const EnterEpoch& enter) {
  Hear(place, [this, enter](SimWorker& worker) { Enter(worker, enter.epoch, enter.rank); });
}

// In order, also at a worker that hangs and never reads it.
void SimWorkers::Hear(const WorkerPlace& place, std::function<void(SimWorker& worker)> heard) {
  SimWorker* const worker = Find(place);
  if (worker == nullptr) return;
  scheduler_.After(100us, Scheduler::kNobody, [this, worker, heard = std::move(heard)] {
    if (!worker->alive || worker->hung) return;
    worker->heard = scheduler_.now();
    heard(*worker);
  });
}

void SimWorkers::Signal(const WorkerPlace& place, int signal) {
  SimWorker* const worker = Find(place);
  if (worker == nullptr || signal == 0) return;
  if (signal == SIGKILL) {
    scheduler_.After(Some(1ms), Scheduler::kNobody,
                     [this, worker] { Die(*worker, ExitStatus::Killed(SIGKILL)); });
  } else if (!worker->ignores_term) {
    const bool handles = !worker->in_place && random_.Chance(0.5);
    EndSoon(*worker, Some(30ms), handles ? ExitStatus::Exited(0) : ExitStatus::Killed(signal));
  }
}

void SimWorkers::Kill(const WorkerPlace& place, const ExitStatus& status) {
  SimWorker* const worker = Find(place);
  if (worker == nullptr) return;
  ++own_deaths_;
  const SimGroup* const group = worker->group;
  const bool whole =
      group != nullptr && group->complete() && !group->finished &&
      std::none_of(group->inside.begin(), group->inside.end(), [](auto* one) { return one->hung; });
  counted_deaths_ += whole ? 1 : 0;
  Die(*worker, status);
}

void SimWorkers::Hang(const WorkerPlace& place) {
  SimWorker* const worker = Find(place);
  if (worker == nullptr || worker->finishing) return;
  // Until somebody has said hello the job is taken to be foreign: the silent may be busy. One that
  // begins anew, with its store, knows nothing of what was said before.
  const auto spoke = [](const auto& one) { return one->alive && one->said_hello; };
  if (std::none_of(workers_.begin(), workers_.end(), spoke)) return;
  // Where all workers of a group are in their own code, a long step cannot be told from a hang for
  // several times the limit (hangs.h): one of them stays awake.
  const auto is_awake = [&](const SimWorker* one) { return one != worker && !one->hung; };
  if (worker->group != nullptr && worker->group->size() > 1) {
    const auto& inside = worker->group->inside;
    if (std::none_of(inside.begin(), inside.end(), is_awake)) return;
  }
  watcher_.Trace(Name(*worker) + " hangs");
  ++own_deaths_;
  HangNow(*worker);
}

void SimWorkers::HangNow(SimWorker& worker) {
  worker.hung = true;
  worker.stopped = random_.Chance(0.5);
}

// Who is not inside, or hangs, is waited for.
Activity SimWorkers::ActivityOf(const SimWorker& worker) const {
  if (worker.hung || worker.group == nullptr) return {"own code", Activity::kNobody};
  for (const EpochWorker& place : worker.group->epoch.workers) {
    const auto& inside = worker.group->inside;
    const bool works = std::any_of(inside.begin(), inside.end(), [&](const SimWorker* one) {
      return one->rank == place.rank && !one->hung;
    });
    if (!works) return {"exchange", place.rank};
  }
  return {"lanes", Activity::kNobody};
}

// As the worker's link has it: also of a worker that hangs, unless its whole process is stopped.
void SimWorkers::TellAgain(SimWorker& worker, const std::string& epoch) {
  scheduler_.After(kTellPause, Scheduler::kNobody, [this, &worker, epoch] {
    if (!worker.alive || worker.stopped) return;
    if (worker.group == nullptr || worker.group->epoch.id != epoch) return;
    Say(worker, AtMessage{{std::max<int64_t>(worker.step, 0), 0}, ActivityOf(worker)});
    TellAgain(worker, epoch);
  });
}

void SimWorkers::KillAllOf(int host, int life) {
  for (const auto& worker : workers_) {
    if (worker->place.host != host || worker->place.life != life) continue;
    scheduler_.After(Some(5ms), Scheduler::kNobody, [this, one = worker.get()] {
      Die(*one, ExitStatus::Killed(SIGKILL));
    });
  }
}

bool SimWorkers::FailsToStart() {
  const bool fails = Happens(scenario_.start_failure / 3);
  own_deaths_ += fails ? 1 : 0;
  return fails;
}

bool SimWorkers::AnyAliveOf(int host, int life) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return worker->alive && worker->place.host == host && worker->place.life == life;
  });
}

// --- What the supervisor says ---

void SimWorkers::On(SimWorker& worker, const BreakMessage& message) {
  if (worker.group == nullptr || worker.group->epoch.number != message.epoch) return;
  Break(worker);
}

void SimWorkers::Break(SimWorker& worker) {
  if (worker.finishing) return;   // all have agreed that the work is done
  if (Happens(scenario_.slow / 4)) {
    ++own_deaths_;
    return HangNow(worker);   // it does not get out of a call into some library
  }
  Park(worker, Some(5ms), false);
}

void SimWorkers::On(SimWorker& worker, const JoinMessage& message) {
  if (worker.group == nullptr || worker.group->epoch.number != message.epoch) return;
  worker.join_wanted = true;
}

void SimWorkers::On(SimWorker& worker, const StopMessage&) {
  worker.stop_wanted = true;
  if (worker.group == nullptr) SaveAndLeave(worker);
}

void SimWorkers::On(SimWorker& worker, const AliveMessage& message) {
  if (scenario_.defect == Defect::kTrustingWorkers) return;
  const HostClock clock(scheduler_.clock(), scenario_.DriftOf(worker.place.host));
  const Duration limit = clock.TrueLength(std::chrono::milliseconds(message.limit_ms));
  const Duration before = std::exchange(worker.quiet_limit, limit);
  if (before == Duration(0) || limit < before) WatchForSilence(worker, ++worker.watches);
}

// As the worker's link has it: a supervisor that says nothing for so long stands still.
void SimWorkers::WatchForSilence(SimWorker& worker, int watch) {
  if (watch != worker.watches) return;
  const TimePoint limit = worker.heard + worker.quiet_limit;
  if (limit <= scheduler_.now()) {
    if (worker.group != nullptr) Break(worker);
    return Later(worker, worker.quiet_limit,
                 [this, &worker, watch] { WatchForSilence(worker, watch); });
  }
  Later(worker, limit - scheduler_.now(),
        [this, &worker, watch] { WatchForSilence(worker, watch); });
}

// --- Groups ---

void SimWorkers::Enter(SimWorker& worker, const EpochRecord& epoch, int rank) {
  SimGroup& group = groups_[epoch.id];
  if (group.epoch.id.empty()) group.epoch = epoch;
  worker.group = &group;
  worker.rank = rank;
  worker.join_wanted = false;
  group.inside.insert(&worker);
  watcher_.Trace(Name(worker) + " is inside epoch " + std::to_string(epoch.number) + " as rank " +
                 std::to_string(rank));
  watcher_.Entered(worker, group, rank);
  if (worker.in_place) {
    Say(worker, AtMessage{{std::max<int64_t>(worker.step, 0), 0}, ActivityOf(worker)});
    TellAgain(worker, epoch.id);
  }
  worker.newest_epoch = std::max(worker.newest_epoch, epoch.number);
  if (!group.complete()) return;
  if (!epoch.inexact_allowed && RefuseMisfits(group)) return;
  // Who has no state takes it from who is furthest, or from the checkpoint.
  int64_t furthest = saved_step_;
  for (const SimWorker* one : group.inside) furthest = std::max(furthest, one->step);
  group.step = furthest;
  for (SimWorker* one : group.inside) one->step = furthest;
  PlanStep(group);
}

// As the trainer's workers do when they meet: all look, before the first step, and the first of
// those furthest counts. Whether there were any.
bool SimWorkers::RefuseMisfits(SimGroup& group) {
  if (!scenario_.in_place) return false;
  const SimWorker* counts = nullptr;
  for (const EpochWorker& place : group.epoch.workers) {   // by rank
    for (const SimWorker* worker : group.inside) {
      if (worker->rank != place.rank) continue;
      if (counts == nullptr || counts->step < worker->step) counts = worker;
    }
  }
  bool any = false;
  for (SimWorker* worker : std::vector<SimWorker*>(group.inside.begin(), group.inside.end())) {
    if (worker->odd == counts->odd) continue;
    any = true;
    Say(*worker, ByeMessage{kExitRefused, "other numerics"});
    EndSoon(*worker, Some(5ms), ExitStatus::Exited(kExitRefused));
  }
  return any;
}

void SimWorkers::LeaveGroup(SimWorker& worker) {
  SimGroup* const group = std::exchange(worker.group, nullptr);
  if (group == nullptr) return;
  group->inside.erase(&worker);
  ++group->left;
  if (group->finished) return;
  for (SimWorker* other : group->inside) {
    if (group->left == 1) NoticeBreak(*other);   // the first loss is what the others meet
  }
}

// A broken connection is seen by some and not by others.
void SimWorkers::NoticeBreak(SimWorker& worker) {
  if (random_.Chance(0.5)) return;
  const std::string epoch = worker.group->epoch.id;
  Later(worker, Some(100ms), [this, &worker, epoch] {
    if (worker.group == nullptr || worker.group->epoch.id != epoch || worker.finishing) return;
    if (worker.in_place) {
      Park(worker, {}, false);
    } else {
      ++own_deaths_;
      Die(worker, ExitStatus::Exited(1));
    }
  });
}

void SimWorkers::Park(SimWorker& worker, Duration delay, bool at_boundary) {
  const std::string epoch = worker.group->epoch.id;
  Later(worker, delay, [this, &worker, epoch, at_boundary] {
    if (worker.group == nullptr || worker.group->epoch.id != epoch) return;
    const int64_t number = worker.group->epoch.number;
    LeaveGroup(worker);
    watcher_.Trace(Name(worker) + " parked epoch " + std::to_string(number));
    Say(worker, ParkedMessage{number, worker.step, at_boundary});
    if (worker.stop_wanted) SaveAndLeave(worker);
  });
}

// Alone: it holds the whole state.
void SimWorkers::SaveAndLeave(SimWorker& worker) {
  Later(worker, Some(100ms), [this, &worker] {
    saved_step_ = std::max(saved_step_, worker.step);
    Say(worker, SavedMessage{worker.step});
    Say(worker, LeavingMessage{worker.step});
    EndSoon(worker, Some(5ms), ExitStatus::Exited(0));
  });
}

void SimWorkers::PlanStep(SimGroup& group) {
  if (group.stepping) return;
  group.stepping = true;
  scheduler_.After(Some(scenario_.step_time), Scheduler::kNobody, [this, &group] {
    group.stepping = false;
    const auto hangs = [](const SimWorker* worker) { return worker->hung; };
    if (!group.complete() || group.finished) return;
    for (SimWorker* worker : group.inside) {
      if (!worker->in_place) continue;
      if (!worker->hung) Say(*worker, AtMessage{{group.step, 1}, ActivityOf(*worker)});
    }
    // Who waits for one that hangs waits until somebody breaks the epoch.
    if (std::none_of(group.inside.begin(), group.inside.end(), hangs)) FinishStep(group);
  });
}

// The vote: all see the same wishes, and do the same.
void SimWorkers::FinishStep(SimGroup& group) {
  watcher_.Stepped(group);
  bool join = false, stop = false;
  ++group.step;
  const auto inside = group.inside;
  for (SimWorker* worker : inside) {
    worker->step = group.step;
    join |= worker->join_wanted;
    stop |= worker->stop_wanted;
    if (worker->in_place) Say(*worker, AtMessage{{group.step, 0}, ActivityOf(*worker)});
  }
  if (stop || group.step % kSaveEvery == 0) saved_step_ = std::max(saved_step_, group.step);
  if (group.step >= scenario_.steps) return Finish(group);
  if (!join && !stop) return PlanStep(group);
  group.finished = true;   // nobody will take their leaving for a loss
  for (SimWorker* worker : inside) {
    if (!worker->stop_wanted) {
      Park(*worker, Some(10ms), true);
    } else {
      Later(*worker, Some(100ms), [this, worker, step = group.step] {
        Say(*worker, SavedMessage{step});
        Say(*worker, LeavingMessage{step});
        EndSoon(*worker, Some(5ms), ExitStatus::Exited(0));
      });
    }
  }
}

void SimWorkers::Finish(SimGroup& group) {
  watcher_.Trace("epoch " + std::to_string(group.epoch.number) + " has done the work");
  group.finished = true;
  work_done_ = true;
  saved_step_ = group.step;
  for (SimWorker* worker : group.inside) {
    worker->finishing = true;
    Later(*worker, Some(200ms), [this, worker] {
      if (worker->in_place) Say(*worker, ByeMessage{0, "finished"});
      EndSoon(*worker, Some(20ms), ExitStatus::Exited(0));
    });
  }
}

}  // namespace keel
