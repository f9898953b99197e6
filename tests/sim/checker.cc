// The invariants, each where it can first be seen to be broken.
#include "tests/sim/checker.h"

#include <algorithm>

#include "elastic/protocol/exit_codes.h"

namespace keel {
namespace {

std::string NameOf(const EpochRecord& record) {
  return "epoch " + std::to_string(record.number) + " (" + record.id.substr(0, 4) + ")";
}

std::string NameOf(const SimWorker& worker) {
  return "worker " + std::to_string(worker.place.host) + "." + std::to_string(worker.place.seat) +
         " " + worker.place.worker.substr(0, 4);
}

// The simulator's epoch stores carry the generation of the board in their prefix.
std::string GenerationOf(const EpochRecord& record) {
  return record.store.prefix.substr(0, record.store.prefix.find('/'));
}

}  // namespace

void Checker::Object(const std::string& failure) {
  if (failure_.empty()) failure_ = failure;
}

// S9: a board is opened once, by a host that was asked or where nobody hears the former one.
void Checker::BoardOpened(const Opening& opening) {
  generations_.emplace(opening.generation, static_cast<int>(generations_.size()));
  const BoardPlace& place = opening.place;
  const std::string who = "S9: h" + std::to_string(opening.host);
  const bool is_new = addresses_.insert(place.address).second;
  const bool is_open = std::any_of(open_.begin(), open_.end(), [&](const auto& entry) {
    return entry.second.by == place.by && entry.second.term == place.term;
  });
  if (!is_new || is_open) Object(who + " opened its board of " + PlaceText(place) + " once more");
  open_[place.address] = place;
  if (!opening.heard_by.empty()) {
    Object(who + " took the role unasked, while " + opening.heard_by + " hears the coordinator");
  }
}

// S9: no host follows a board that is behind the one that it was on.
void Checker::Reached(int host, const BoardPlace& left, const BoardPlace& reached) {
  if (IsAhead(reached, left)) return;
  Object("S9: h" + std::to_string(host) + " went from the board of " + PlaceText(left) +
         ", epoch " + std::to_string(left.epoch) + ", to that of " + PlaceText(reached) +
         ", epoch " + std::to_string(reached.epoch) + ", which is behind");
}

void Checker::ToldOfEnd(const std::string& incarnation, const std::string& what) {
  told_.emplace(incarnation, what);
}

void Checker::Formed(const EpochRecord& record) {
  const auto [late, is_new] = too_late_.try_emplace(record.id);
  if (!is_new) return;   // it is taken up, or its store is opened anew
  for (const EpochHost& host : record.hosts) {
    if (told_.contains(host.incarnation)) late->second.insert(host.incarnation);
  }
  // Where no lease keeps it, an epoch is forgotten with the last host that has read of it.
  if (scenario_.has_lease && !scenario_.lease_apart) return;
  for (const auto& [id, other] : epochs_) {
    const std::set<std::string>& readers = readers_[id];
    if (std::all_of(readers.begin(), readers.end(), is_gone_)) forgotten_[record.id].insert(id);
  }
}

// S10: whoever coordinates, no host that knows that the job stops, or has ended, enters an epoch
// that was formed afterwards.
void Checker::CheckEnd(const SimWorker& worker, const EpochRecord& record) {
  const std::string& host = worker.place.supervisor;
  if (!too_late_[record.id].contains(host)) return;
  Object("S10: " + NameOf(worker) + " came to " + NameOf(record) + ", and its host had read " +
         told_[host]);
}

// S1: an epoch's record never changes, and a board never has two of one number.
Checker::Epoch& Checker::Know(const EpochRecord& record) {
  const auto known = epochs_.find(record.id);
  if (known != epochs_.end()) {
    const EpochRecord& before = known->second.record;
    if (before.workers != record.workers && GenerationOf(before) == GenerationOf(record)) {
      Object("S1: " + NameOf(record) + " has two lists of members");
    }
    return known->second;
  }
  const Order order{generations_[GenerationOf(record)], record.number};
  const auto [entry, fresh] = ids_.emplace(order, record.id);
  if (!fresh) Object("S1: " + NameOf(record) + " has the number of " + entry->second);
  const int lineage = JoinLineages(record);
  Epoch& epoch = epochs_[record.id];
  epoch.order = order;
  epoch.lineage = lineage;
  epoch.record = record;
  CheckRanksStable(epoch);
  CheckRestarts(epoch);
  // With a window, those that have grown old are told, too, but allowed for.
  const RestartPolicy& restarts = scenario_.policy.restarts;
  const bool all_count = restarts.window == Duration(0) && scenario_.policy.shun_after == 0;
  if (all_count && record.restarts > restarts.restarts_max) {
    Object("S6: " + NameOf(record) + " was formed after " + std::to_string(record.restarts) +
           " restarts");
  }
  return epoch;
}

// A host that was put into its first epoch of a lineage and has not read of it is as one that was
// in none: the epoch cannot run without it, and it may go on with hosts that have begun the job
// anew, which is what happens where new hosts reach none that were in it (PROTOCOL.md, the table of
// section 12), or find a lease whose beat stands still ("A lease", the last paragraph).
std::vector<std::string> Checker::HostsThatKnow(const EpochRecord& record) {
  std::vector<std::string> hosts;
  const std::set<std::string>& readers = readers_[record.id];
  for (const EpochHost& host : record.hosts) {
    if (readers.contains(host.incarnation)) hosts.push_back(host.incarnation);
  }
  return hosts;
}

void Checker::Read(const std::string& incarnation, const EpochRecord& record) {
  readers_[record.id].insert(incarnation);
  const auto known = epochs_.find(record.id);
  if (known != epochs_.end()) known->second.lineage = JoinLineages(record);
}

// Hosts that were ever in one epoch know of each other, through any chain of epochs. Hosts that are
// new to the job, at a board that is new as well, begin a lineage of their own. If one of them
// comes to a board that has got further, it changes over, and the others stay where they are.
int Checker::JoinLineages(const EpochRecord& record) {
  const std::vector<std::string> hosts = HostsThatKnow(record);
  // Who takes an epoch up need not have been in it.
  const bool is_in_it = std::any_of(record.hosts.begin(), record.hosts.end(), [&](const auto& one) {
    return one.incarnation == record.coordinator;
  });
  const auto own = lineages_.find(record.coordinator);
  const bool has_own = is_in_it && own != lineages_.end();
  int lineage = has_own ? own->second : -1;
  for (const std::string& host : hosts) {
    const auto known = lineages_.find(host);
    if (known == lineages_.end()) continue;
    if (lineage < 0) lineage = known->second;
    const int merged = known->second;
    if (has_own && joined_[host] != record.number) continue;
    for (auto& [incarnation, one] : lineages_) one = one == merged ? lineage : one;
    for (auto& [id, one] : epochs_) one.lineage = one.lineage == merged ? lineage : one.lineage;
  }
  if (lineage < 0) lineage = lineages_made_++;
  for (const std::string& host : hosts) {
    if (joined_[host] > record.number) continue;
    lineages_[host] = lineage;
    joined_[host] = record.number;
  }
  return lineage;
}

// S2: in place, a survivor keeps its rank if the new epoch has it.
void Checker::CheckRanksStable(const Epoch& epoch) {
  const auto before = ids_.find({epoch.order.first, epoch.order.second - 1});
  if (before == ids_.end() || epoch.record.kind != JobKind::kInPlace) return;
  const Epoch& former = epochs_[before->second];
  for (const EpochWorker& worker : epoch.record.workers) {
    for (const EpochWorker& was : former.record.workers) {
      const bool same = !was.worker.empty() && was.worker == worker.worker;
      if (!same || was.rank >= static_cast<int>(epoch.record.workers.size())) continue;
      if (was.rank == worker.rank) continue;
      Object("S2: worker " + worker.worker + ", rank " + std::to_string(was.rank) + " of " +
             NameOf(former.record) + " became rank " + std::to_string(worker.rank) + " of " +
             NameOf(epoch.record));
    }
  }
}

// S10: restarts that were spent stay spent: the newest epoch that any of these hosts trained in
// counted no more of them.
void Checker::CheckRestarts(const Epoch& epoch) {
  const Epoch* former = nullptr;
  for (const auto& [id, other] : epochs_) {
    if (&other == &epoch || !other.has_stepped) continue;
    if (other.record.number >= epoch.record.number) continue;
    const auto& hosts = other.record.hosts;
    const bool shares = std::any_of(hosts.begin(), hosts.end(), [&](const EpochHost& host) {
      const auto& own = epoch.record.hosts;
      return std::any_of(own.begin(), own.end(), [&](const EpochHost& one) {
        return one.incarnation == host.incarnation;
      });
    });
    if (shares && (!former || former->record.number < other.record.number)) former = &other;
  }
  if (former == nullptr || former->record.restarts <= epoch.record.restarts) return;
  Object("S10: " + NameOf(epoch.record) + " counts " + std::to_string(epoch.record.restarts) +
         " restarts, " + NameOf(former->record) + " counted " +
         std::to_string(former->record.restarts));
}

// S3: a rank of an epoch belongs to one worker for ever, the one that the record names.
void Checker::CheckPlace(Epoch& epoch, const SimWorker& worker, int rank) {
  const auto& workers = epoch.record.workers;
  if (rank < 0 || rank >= static_cast<int>(workers.size())) {
    return Object("S3: " + NameOf(worker) + " came as rank " + std::to_string(rank));
  }
  const std::string& named = workers[rank].worker;
  if (!named.empty() && named != worker.place.worker) {
    Object("S3: " + NameOf(worker) + " came in the place of " + named);
  }
  const auto [entry, fresh] = epoch.by_rank.emplace(rank, worker.place.worker);
  if (!fresh) {
    Object("S3: rank " + std::to_string(rank) + " of " + NameOf(epoch.record) + " was given to " +
           entry->second + " and to " + worker.place.worker);
  }
}

// S4: the workers of a supervisor are never inside two epochs, and nobody enters an epoch before
// all processes of its supervisors are out of the older ones.
void Checker::CheckAlone(const SimWorker& worker, const SimGroup& group,
                         const SimWorkers& workers) {
  const int64_t number = group.epoch.number;
  for (const auto& [id, other] : workers.groups()) {
    if (id == group.epoch.id) continue;
    const bool older = epochs_[id].record.number < number;
    for (const SimWorker* inside : other.inside) {
      if (!older && inside->place.supervisor != worker.place.supervisor) continue;
      const auto& hosts = group.epoch.hosts;
      const bool in_both = std::any_of(hosts.begin(), hosts.end(), [&](const EpochHost& host) {
        return host.incarnation == inside->place.supervisor;
      });
      if (!in_both) continue;
      Object("S4: " + NameOf(worker) + " is inside " + NameOf(group.epoch) + " while " +
             NameOf(*inside) + " of one of its hosts is still inside " + NameOf(other.epoch));
    }
  }
}

void Checker::Entered(const SimWorker& worker, const SimGroup& group, int rank,
                      const SimWorkers& workers, TimePoint) {
  Epoch& epoch = Know(group.epoch);
  CheckPlace(epoch, worker, rank);
  CheckAlone(worker, group, workers);
  CheckEnd(worker, group.epoch);
  if (worker.newest_epoch >= group.epoch.number) {
    Object("S3: " + NameOf(worker) + " came to " + NameOf(group.epoch) + " after epoch " +
           std::to_string(worker.newest_epoch));
  }
}

// Foreign workers know nothing of a supervisor that stands still, and it can end none (PROTOCOL.md,
// "A lease", the last paragraph).
bool Checker::IsOutOfReach(const EpochRecord& epoch) const {
  return !scenario_.in_place && epoch.by_lease &&
         std::any_of(epoch.hosts.begin(), epoch.hosts.end(),
                     [&](const EpochHost& host) { return stands_still_(host.incarnation); });
}

// S5: no epoch makes a step once somebody has entered a later one: so no two of them run, and who
// was given up does not get on. It holds for all epochs of a lineage, whatever boards they are of.
void Checker::Stepped(const SimGroup& group, TimePoint now) {
  progress_ = now;
  const auto is_odd = [](const SimWorker* worker) { return worker->odd; };
  const auto odd = std::count_if(group.inside.begin(), group.inside.end(), is_odd);
  if (odd > 0 && static_cast<size_t>(odd) < group.inside.size() && scenario_.in_place) {
    Object("S8: " + NameOf(group.epoch) + " made a step with workers of two numerics");
  }
  Epoch& epoch = Know(group.epoch);
  if (IsOutOfReach(group.epoch)) return;
  epoch.has_stepped = true;
  for (const auto& [id, other] : epochs_) {
    if (other.lineage != epoch.lineage || other.by_rank.empty()) continue;
    if (other.record.number < epoch.record.number || &other == &epoch) continue;
    const bool is_of_same_board = other.order.first == epoch.order.first;
    if (!is_of_same_board && forgotten_[epoch.record.id].contains(id)) continue;
    if (other.record.number == epoch.record.number) {
      if (other.has_stepped) {
        Object("S1: " + NameOf(epoch.record) + " and " + NameOf(other.record) + " made steps");
      }
      continue;
    }
    Object("S5: " + NameOf(group.epoch) + " made a step after somebody had entered " +
           NameOf(other.record));
  }
}

// S7: a supervisor leaves no process behind, and its exit code says what is true.
void Checker::SupervisorExits(int host, int code, bool leaves_workers, const SimWorkers& workers,
                              TimePoint now) {
  progress_ = now;
  const std::string who = "S7: the supervisor of host " + std::to_string(host) + " ";
  if (leaves_workers) Object(who + "left workers behind");
  if (code == kExitFinished && !workers.work_done()) Object(who + "says that the job is done");
  // Hosts that give a lost store up leave in good order, too.
  const bool stopped = scenario_.stop_asked || !scenario_.hosts_stay;
  if (code == kExitStopped && !stopped) Object(who + "says that it was stopped");
  if (code == kExitFailed && workers.own_deaths() <= scenario_.policy.restarts.restarts_max) {
    Object(who + "gave up after " + std::to_string(workers.own_deaths()) + " deaths");
  }
  // The coordinator's host decides. Where one host is enough, the odd one may be the only one that
  // is left; and until the job has made a step, it may be an heir before anybody has compared.
  const bool has_stepped = std::any_of(epochs_.begin(), epochs_.end(), [](const auto& epoch) {
    return epoch.second.has_stepped;
  });
  const bool may_odd_decide =
      scenario_.odd_host >= 0 && (scenario_.policy.hosts_min == 1 || !has_stepped);
  const bool may_be_refused = host == scenario_.odd_host || may_odd_decide;
  if (code == kExitRefused && !may_be_refused) Object(who + "was refused");
}

// L1: when nothing is wrong any more, the job steps or is over within a bound.
void Checker::Tick(const Health& health) {
  Duration bound = LivenessBound(scenario_);
  const bool waits = health.supervisors < scenario_.policy.hosts_min || !health.store;
  if (waits) bound += scenario_.policy.join_limit;
  const TimePoint since = std::max(progress_, health.disturbed);
  if (health.now <= since + bound) return;
  Object("L1: nothing got on for " + DurationText(health.now - since) + " although nothing is " +
         "wrong; here are " + health.who);
}

// S6: where no host was lost, every death was counted; so many restarts, and not one more. What a
// host that is left out costs is told by tests of JobWatch.
void Checker::JobOver(const SimWorkers& workers) {
  const RestartPolicy& policy = scenario_.policy.restarts;
  const bool shuns = scenario_.policy.shun_after > 0;
  const bool counted = scenario_.hosts_stay && policy.window == Duration(0) && !shuns;
  if (!counted || scenario_.stop_asked || !workers.work_done()) return;
  // A break for a newcomer stops foreign workers whatever befell them at the same time.
  const auto is_late = [](Duration arrival) { return arrival > std::chrono::seconds(1); };
  const auto& arrivals = scenario_.arrivals;
  if (!scenario_.in_place && std::any_of(arrivals.begin(), arrivals.end(), is_late)) return;
  if (workers.counted_deaths() > policy.restarts_max) {
    Object("S6: the job went on after " + std::to_string(workers.counted_deaths()) + " deaths, " +
           std::to_string(policy.restarts_max) + " restarts allowed");
  }
}

}  // namespace keel
