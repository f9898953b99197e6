// The events of a walk, and the rules that forbid too little.
#include "tests/elastic/decisions/quorum_walk.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace keel {
namespace {

unsigned BitOf(int host) { return 1u << host; }

std::string NameOf(int host) { return std::string(1, static_cast<char>('a' + host)); }

const std::string& IdOf(int epoch) {
  static const std::vector<std::string> ids = [] {
    std::vector<std::string> all;
    for (int i = 0; i <= kWalkEvents; ++i) all.push_back("e" + std::to_string(i));
    return all;
  }();
  return ids[epoch];
}

std::string HostsText(unsigned hosts) {
  std::string text;
  for (int host = 0; host < kWalkHostsMax; ++host) {
    if (hosts & BitOf(host)) text += NameOf(host);
  }
  return text;
}

}  // namespace

// Epoch 0 runs, and all have met it.
QuorumWalk::QuorumWalk(int hosts, WalkRule rule, uint64_t seed)
    : count_(hosts), rule_(rule), random_(seed), hosts_(hosts) {
  deaths_ = .03 * random_.Double();
  changes_ = deaths_ + .25 * random_.Double() * random_.Double();
  forms_ = changes_ + .05 + .15 * random_.Double();
  enters_ = forms_ + (1 - forms_) * (.4 + .5 * random_.Double());
  followers_ = random_.Double();
  silent_ = .1 * random_.Double() * random_.Double();
  absent_ = .3 * random_.Double() * random_.Double();
  epochs_.reserve(kWalkEvents + 1);
  epochs_.push_back({BitOf(hosts) - 1, 0, 1, true, {}});
}

bool QuorumWalk::Run() {
  for (int event = 0; event < kWalkEvents && !split_; ++event) {
    const int host = static_cast<int>(random_.Uniform(count_));
    const double what = random_.Double();
    if (hosts_[host].dead) continue;
    if (what < deaths_) {
      Die(host);
    } else if (what < changes_) {
      ChangeBoards(host);
    } else if (what < forms_) {
      Form(hosts_[host].follows);
    } else if (what < enters_) {
      Enter(host);
    } else {
      Meet(host);
    }
  }
  return !split_;
}

bool QuorumWalk::IsOnBoardOf(int host, int coordinator) const {
  const Host& on = hosts_[host];
  const Host& board = hosts_[coordinator];
  if (board.follows != coordinator || on.follows != coordinator || on.dropped) return false;
  return host == coordinator || on.since >= board.opened;
}

void QuorumWalk::Park(Host& host, int64_t promise) {
  host.inside = kNone;
  host.outside = std::max(host.outside, promise);
}

// What the host can tell of the coordinator that it has lost. It is kept until the host enters
// another epoch; of coordinators that it loses in between, it has nothing to tell.
void QuorumWalk::NoteLoss(int host, bool refused) {
  Host& of = hosts_[host];
  if (of.entered == kNone || epochs_[of.entered].coordinator != of.follows) return;
  LostCoordinator lost;
  lost.who = NameOf(of.follows);
  lost.inside = IdOf(of.entered);
  lost.outside = rule_ == WalkRule::kPromisesIgnored ? 0 : of.outside;
  lost.beat_age = of.dropped && rule_ != WalkRule::kSilenceIgnored ? kBeatLimit : Duration(0);
  lost.refused = refused || rule_ == WalkRule::kClosedIsDead;
  of.lost = lost;
  of.entered = kNone;
}

void QuorumWalk::Die(int host) {
  const auto living = std::count_if(hosts_.begin(), hosts_.end(),
                                    [](const Host& each) { return !each.dead; });
  if (living == 1) return;
  Host& dies = hosts_[host];
  const bool refuses = random_.Chance(.8);   // else its machine is silent
  const int coordinator = dies.follows;
  const bool registered = IsOnBoardOf(host, coordinator) && !hosts_[coordinator].dead;
  dies.dead = true;
  Tell(NameOf(host) + (refuses ? " dies" : " dies silently"));
  if (!refuses) return;
  if (coordinator != host && registered) hosts_[coordinator].gone.push_back({host, dies.past});
  if (coordinator != host) return;
  for (int other = 0; other < count_; ++other) {
    const Host& follows = hosts_[other];
    if (follows.dead || follows.follows != host || follows.since < dies.opened) continue;
    NoteLoss(other, true);
  }
}

// A host that has lost its coordinator, or sees another one. Its own board, if it had one, is never
// opened again.
void QuorumWalk::ChangeBoards(int host) {
  Host& changes = hosts_[host];
  if (!hosts_[changes.follows].dead) NoteLoss(host, false);
  Park(changes, 0);
  do {
    changes.follows = static_cast<int>(random_.Uniform(count_));
    if (random_.Chance(followers_)) changes.follows = hosts_[changes.follows].follows;
  } while (hosts_[changes.follows].dead);
  changes.dropped = false;
  changes.since = changes.opened = static_cast<int>(epochs_.size());
  changes.entered = kNone;
  changes.gone.clear();
  Tell(NameOf(host) + " follows " + NameOf(changes.follows));
}

// Each host on the board takes part, or is parked and does not, or is silent, and may be inside an
// epoch still.
void QuorumWalk::Form(int coordinator) {
  Host& board = hosts_[coordinator];
  if (board.dead || board.follows != coordinator) return;
  const int newest = NewestOn(coordinator, board.opened);
  const int64_t promise = newest == kNone ? 0 : epochs_[newest].number;
  unsigned here = 0, proposed = 0;
  for (int host = 0; host < count_; ++host) {
    if (hosts_[host].dead || !IsOnBoardOf(host, coordinator)) continue;
    // The coordinator is never silent to itself.
    double luck = random_.Double();
    if (host == coordinator) luck = silent_ + luck * (1 - silent_);
    if (luck < silent_) {
      hosts_[host].dropped = true;
      continue;
    }
    Park(hosts_[host], promise);
    here |= BitOf(host);
    if (luck >= silent_ + absent_) proposed |= BitOf(host);
  }
  const EpochSet before = Before(coordinator, here);
  if (proposed == 0 || !MayForm(coordinator, here, proposed, before)) return;
  Epoch epoch{proposed, coordinator, promise + 1, false, before};
  for (size_t i = 0; i < epochs_.size(); ++i) {
    if (!before[i]) continue;
    epoch.number = std::max(epoch.number, epochs_[i].number + 1);
    epoch.from |= epochs_[i].from;
  }
  const int id = static_cast<int>(epochs_.size());
  epochs_.push_back(epoch);
  Tell(NameOf(coordinator) + " forms " + IdOf(id) + " of " + HostsText(proposed) + ", number " +
       std::to_string(epoch.number));
}

int QuorumWalk::NewestOn(int coordinator, int since) const {
  for (int i = static_cast<int>(epochs_.size()) - 1; i >= since; --i) {
    if (epochs_[i].coordinator == coordinator) return i;
  }
  return kNone;
}

// A host may act late: on a board that its coordinator has left since, or that has dropped it.
void QuorumWalk::Enter(int host) {
  Host& enters = hosts_[host];
  const Host& board = hosts_[enters.follows];
  const int id = NewestOn(enters.follows, std::max(enters.since, board.opened));
  if (board.dead || id <= 0 || !(epochs_[id].hosts & BitOf(host))) return;
  if (enters.past.tried[id] || enters.past.met == id) return;
  enters.inside = enters.entered = id;
  enters.past.tried.set(id);
  enters.lost.reset();
  Tell(NameOf(host) + " enters " + IdOf(id));
  if (Runs(id)) NoteRun(id);
}

void QuorumWalk::Meet(int host) {
  Host& meets = hosts_[host];
  const int id = meets.inside;
  if (id <= 0 || !epochs_[id].ran) return;
  meets.past.met = id;
  meets.past.tried.reset();
}

bool QuorumWalk::Runs(int epoch) const {
  for (int host = 0; host < count_; ++host) {
    if (!(epochs_[epoch].hosts & BitOf(host))) continue;
    if (hosts_[host].dead || hosts_[host].inside != epoch) return false;
  }
  return true;
}

void QuorumWalk::NoteRun(int epoch) {
  epochs_[epoch].ran = true;
  ++epochs_run_;
  Tell(IdOf(epoch) + " runs");
  for (int other = 0; other < static_cast<int>(epochs_.size()); ++other) {
    if (other == epoch || !epochs_[other].ran) continue;
    const bool related = epochs_[epoch].from[other] || epochs_[other].from[epoch];
    if (related && !Runs(other)) continue;
    split_ = true;
    Tell("SPLIT between " + IdOf(other) + " and " + IdOf(epoch));
  }
}

QuorumWalk::EpochSet QuorumWalk::Before(int coordinator, unsigned here) const {
  const Host& board = hosts_[coordinator];
  EpochSet before;
  int64_t newest_met = 0;
  const auto each_past = [&](const auto& visit) {
    for (int host = 0; host < count_; ++host) {
      if (here & BitOf(host)) visit(hosts_[host].past);
    }
    for (const auto& [host, past] : board.gone) visit(past);
  };
  each_past([&](const Past& past) {
    before |= past.tried;
    newest_met = std::max(newest_met, epochs_[past.met].number);
  });
  each_past([&](const Past& past) {
    if (epochs_[past.met].number == newest_met) before.set(past.met);
  });
  return before;
}

bool QuorumWalk::HasMajority(unsigned proposed, const Epoch& epoch, unsigned counted) const {
  const unsigned whole = epoch.hosts & counted;
  const int present = std::popcount(proposed & whole), size = std::popcount(whole);
  const bool has_coordinator = whole & BitOf(epoch.coordinator);
  const unsigned vote = has_coordinator ? BitOf(epoch.coordinator) : whole & (~whole + 1);
  return 2 * present > size || (2 * present == size && (size == 0 || proposed & vote));
}

bool QuorumWalk::MayForm(int coordinator, unsigned here, unsigned proposed,
                         const EpochSet& before) {
  unsigned counted = ~0u;
  if (rule_ == WalkRule::kDeadNotCounted) {
    for (int host = 0; host < count_; ++host) {
      if (hosts_[host].dead) counted &= ~BitOf(host);
    }
  }
  int newest_told = 0, newest_met = 0;
  bool of_all = true;
  for (int i = 0; i < static_cast<int>(epochs_.size()); ++i) {
    if (!before[i]) continue;
    of_all = of_all && HasMajority(proposed, epochs_[i], counted);
    if (epochs_[i].number >= epochs_[newest_told].number) newest_told = i;
  }
  for (int host = 0; host < count_; ++host) {
    const int met = hosts_[host].past.met;
    if ((here & BitOf(host)) && epochs_[met].number >= epochs_[newest_met].number) newest_met = met;
  }
  switch (rule_) {
    case WalkRule::kAnything: return true;
    case WalkRule::kNewestToldOnly: return HasMajority(proposed, epochs_[newest_told], counted);
    case WalkRule::kMetOnly: return HasMajority(proposed, epochs_[newest_met], counted);
    case WalkRule::kDeadNotCounted: return of_all;
    default: return Decide(coordinator, here, proposed);
  }
}

HostPast QuorumWalk::PastOf(int host, const Past& past, EpochSet* named) const {
  HostPast told{NameOf(host), {.met = IdOf(past.met), .lost = hosts_[host].lost}};
  named->set(past.met);
  *named |= past.tried;
  for (size_t i = 0; i < epochs_.size(); ++i) {
    if (past.tried[i]) told.seen.tried.push_back(IdOf(i));
  }
  return told;
}

bool QuorumWalk::Decide(int coordinator, unsigned here, unsigned proposed) {
  const Host& board = hosts_[coordinator];
  QuorumView view;
  std::vector<std::string> names;
  EpochSet named;
  for (int host = 0; host < count_; ++host) {
    if (here & BitOf(host)) view.here.push_back(PastOf(host, hosts_[host].past, &named));
    if (proposed & BitOf(host)) names.push_back(NameOf(host));
  }
  for (const auto& [host, past] : board.gone) view.gone.push_back(PastOf(host, past, &named));
  const int formed = NewestOn(coordinator, board.opened);
  for (int i = 0; i < static_cast<int>(epochs_.size()); ++i) {
    if (!named[i] && i != formed) continue;
    CountedEpoch epoch{epochs_[i].number, IdOf(i), NameOf(epochs_[i].coordinator), {}};
    for (int host = 0; host < count_; ++host) {
      if (epochs_[i].hosts & BitOf(host)) epoch.hosts.push_back(NameOf(host));
    }
    if (i == formed) view.formed = epoch;
    if (named[i]) view.epochs.push_back(std::move(epoch));
  }
  const QuorumVerdict verdict = DecideQuorum(view, names);
  if (verdict.may_form) Tell("for " + verdict.detail);
  return verdict.may_form;
}

void QuorumWalk::Tell(const std::string& line) {
  if (keeps_story_) story_ += line + "\n";
}

}  // namespace keel
