// Each slice that was disputed once has up to four claims: two before, and two now.
#include "trainer/exchange/sum_claims.h"

#include <algorithm>
#include <climits>
#include <set>
#include <span>

namespace keel {
namespace {

// Who adds that slice the second time.
size_t SecondOf(size_t slice, int turn, size_t world) {
  return (slice + world - static_cast<size_t>(turn)) % world;
}

struct Claim {
  std::string member;
  std::string host;
  Digest sum;
  std::optional<Digest> inputs;
};

std::vector<Claim> ClaimsOn(size_t slice, const SumClaims& all) {
  const size_t second = SecondOf(slice, all.made.turn, all.members.size());
  return {{all.members[slice], all.hosts[slice], all.made.slices[slice], all.inputs[slice]},
          {all.members[second], all.hosts[second], all.made.again[slice],
           all.inputs_again[second]}};
}

bool AddedTheSame(const Claim& one, const Claim& other) {
  return one.inputs.has_value() && one.inputs == other.inputs;
}

// The sum that two workers came to, and to which somebody came both times: of two hosts, where more
// than one has a word in it. The first time is that of the first two claims.
std::optional<Digest> Proven(const std::vector<Claim>& claims) {
  std::set<std::string> all_hosts;
  for (const Claim& claim : claims) all_hosts.insert(claim.host);
  std::optional<Digest> proven;
  for (const Claim& one : claims) {
    std::set<std::string> members;
    std::set<std::string> hosts;
    for (const Claim& other : claims) {
      if (other.sum != one.sum) continue;
      members.insert(other.member);
      hosts.insert(other.host);
    }
    const bool is_of_both = (claims[0].sum == one.sum || claims[1].sum == one.sum) &&
                            (claims[2].sum == one.sum || claims[3].sum == one.sum);
    if (!is_of_both || members.size() < 2) continue;
    if (all_hosts.size() > 1 && hosts.size() < 2) continue;
    if (proven && *proven != one.sum) return std::nullopt;
    proven = one.sum;
  }
  return proven;
}

// Who came to another sum the second time, while everybody else whom two claims are of did not.
std::optional<std::string> OnlyFickleOne(const std::vector<Claim>& claims) {
  std::set<std::string> fickle;
  std::set<std::string> steady;
  for (const Claim& one : claims) {
    size_t own = 0;
    size_t same = 0;
    for (const Claim& other : claims) {
      own += size_t{other.member == one.member};
      same += size_t{other.member == one.member && other.sum == one.sum};
    }
    if (own > 1) (same == own ? steady : fickle).insert(one.member);
  }
  if (fickle.size() != 1 || steady.empty()) return std::nullopt;
  return *fickle.begin();
}

int HostsApart(int turn, const std::vector<std::string>& hosts) {
  int apart = 0;
  for (size_t slice = 0; slice < hosts.size(); ++slice) {
    apart += int{hosts[slice] != hosts[SecondOf(slice, turn, hosts.size())]};
  }
  return apart;
}

// How much the second worker's word adds, if the first time it was the one of `former`.
int WorthBeside(int former, int turn, const std::vector<std::string>& hosts) {
  int worth = 0;
  for (size_t slice = 0; slice < hosts.size(); ++slice) {
    const std::string& host = hosts[SecondOf(slice, turn, hosts.size())];
    const bool is_beside_second = host == hosts[SecondOf(slice, former, hosts.size())];
    const bool is_beside_first = host == hosts[slice];
    if (!is_beside_second) worth += is_beside_first ? 2 : 3;
    if (is_beside_second && !is_beside_first) ++worth;
  }
  return worth;
}

}  // namespace

int TurnOfSums(uint64_t turn, const std::vector<std::string>& hosts, int64_t doubts) {
  const int world = static_cast<int>(hosts.size());
  if (world == 1) return 0;
  std::vector<int> turns;
  for (int one = 1; one < world; ++one) turns.push_back(one);
  std::vector<int> worths(hosts.size());   // by turn; each one asks all workers
  const auto sort_by = [&](const auto& worth) {
    for (int one = 1; one < world; ++one) worths[static_cast<size_t>(one)] = worth(one);
    std::stable_sort(turns.begin(), turns.end(), [&](int a, int b) {
      return worths[static_cast<size_t>(a)] > worths[static_cast<size_t>(b)];
    });
  };
  sort_by([&](int one) { return HostsApart(one, hosts); });
  const int most = worths[static_cast<size_t>(turns[0])];
  const auto best = static_cast<uint64_t>(std::count(worths.begin() + 1, worths.end(), most));
  const int first = turns[turn % best];
  sort_by([&](int one) { return one == first ? INT_MAX : WorthBeside(first, one, hosts); });
  return turns[static_cast<uint64_t>(doubts) % turns.size()];
}

Digest SumClaims::DigestOfAll() const {
  Digester digester;
  const auto text = [&](const std::string& one) {
    digester.Update(std::as_bytes(std::span(one.c_str(), one.size() + 1)));
  };
  for (const std::string& member : members) text(member);
  text(std::to_string(made.turn));
  for (const auto* const digests : {&made.slices, &made.again}) {
    for (const Digest& digest : *digests) digester.Update(digest.bytes);
  }
  for (const auto* const digests : {&inputs, &inputs_again}) {
    for (const auto& digest : *digests) digester.Update(digest.value_or(Digest()).bytes);
  }
  return digester.Current();
}

std::vector<std::string> DisputedBy(const SumClaims& claims) {
  std::set<std::string> members;
  for (size_t slice = 0; slice < claims.made.slices.size(); ++slice) {
    const std::vector<Claim> both = ClaimsOn(slice, claims);
    if (both[0].sum == both[1].sum) continue;
    for (const Claim& claim : both) members.insert(claim.member);
  }
  return {members.begin(), members.end()};
}

SumVerdict DecideSums(const SumClaims& before, const SumClaims& now) {
  std::set<std::string> wrong;
  std::string open;
  for (size_t slice = 0; slice < now.members.size(); ++slice) {
    std::vector<Claim> claims = ClaimsOn(slice, before);
    for (Claim& claim : ClaimsOn(slice, now)) claims.push_back(std::move(claim));
    const auto differs = [&](const Claim& claim) { return claim.sum != claims[0].sum; };
    if (std::none_of(claims.begin(), claims.end(), differs)) continue;
    if (!AddedTheSame(claims[0], claims[1]) || !AddedTheSame(claims[2], claims[3])) {
      open = "what was added had changed before that, on the way or where it was made";
    } else if (const std::optional<Digest> proven = Proven(claims)) {
      for (const Claim& claim : claims) {
        if (claim.sum != *proven) wrong.insert(claim.member);
      }
    } else if (const std::optional<std::string> fickle = OnlyFickleOne(claims)) {
      wrong.insert(*fickle);
    } else {
      open = "each one comes to its own sum";
    }
  }
  if (wrong.empty()) return {{}, open};
  return {{wrong.begin(), wrong.end()},
          "it came to a sum to which nobody else did, or to another one each time"};
}

}  // namespace keel
