// A majority, as in votes on sums.
#include "trainer/loop/held_bits.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "trainer/group/epoch_group.h"
#include "trainer/loop/recheck_plan.h"
#include "trainer/loop/vote.h"

namespace keel {
namespace {

constexpr char kChanged[] = ": bits have changed in the memory of one of them, or its program has "
                            "changed them beside the optimizer";

}  // namespace

void HeldBits::Add(int rank, const std::optional<Digest>& digest) {
  own_.ranks.push_back(rank);
  own_.digests.push_back(digest);
}

void HeldBits::AddReceived(int rank, const std::optional<Digest>& digest) {
  received_.ranks.push_back(rank);
  received_.digests.push_back(digest);
}

Status HeldBits::Judge(const EpochGroup& group, uint64_t step) const {
  const Minority minority = MinorityOf(own_.digests);
  if (minority.differ && minority.wrong.empty()) return Differ(group, step);
  std::vector<int> wrong;
  for (const int index : minority.wrong) wrong.push_back(own_.ranks[static_cast<size_t>(index)]);
  if (!wrong.empty()) return GoOnWithout(group, step, wrong, "most others");
  for (size_t i = 0; i < received_.ranks.size(); ++i) {
    if (received_.digests[i] != own_.digests[0]) wrong.push_back(received_.ranks[i]);
  }
  if (!wrong.empty()) return GoOnWithout(group, step, wrong, "those from whom it has them");
  return Ok();
}

Status HeldBits::JudgeAndPart(EpochGroup& group, uint64_t step) const {
  Status judged = Judge(group, step);
  if (!judged.ok()) PartInOrder(group);
  return judged;
}

Error HeldBits::Differ(const EpochGroup& group, uint64_t step) const {
  size_t other = 0;
  while (own_.digests[other] == own_.digests[0]) ++other;
  return {Code::kCorrupt, "before step " + std::to_string(step) + " bits of the " + what_ + " of " +
                              group.NameOf(own_.ranks[other]) + " differ from those of " +
                              group.NameOf(own_.ranks[0]) + kChanged};
}

// The first one that is not wrong logs it.
Error HeldBits::GoOnWithout(const EpochGroup& group, uint64_t step, const std::vector<int>& wrong,
                            const std::string& whose) const {
  const auto is_wrong = [&](int rank) {
    return std::find(wrong.begin(), wrong.end(), rank) != wrong.end();
  };
  const std::string differs = "other bits of the " + what_ + " than " + whose;
  if (is_wrong(group.rank())) {
    return {Code::kCorrupt, "step " + std::to_string(step) + ": " + group.NameOf(group.rank()) +
                                " has " + differs + kChanged};
  }
  std::vector<std::string> names;
  for (const int rank : wrong) names.push_back(group.NameOf(rank));
  const std::string who = JoinList(names, ", ");
  int teller = 0;
  while (is_wrong(teller)) ++teller;
  if (group.rank() == teller) {
    LogError("corruption", {{"step", step},
                            {"in", what_},
                            {"member", who},
                            {"reason", "it has " + differs},
                            {"note", "it leaves, and the others go on"}});
  }
  return {Code::kPeerLost, who + ": " + differs};
}

}  // namespace keel
