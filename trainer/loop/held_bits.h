// HeldBits: digests of what members hold, which should be the same bits, and what becomes of those
// whose bits are others.
//
// | of those who have made the steps themselves | a member whose bits are others | all others |
// |---|---|---|
// | most hold the same | fails | go on without it |
// | no majority does | fails | fail, too |
//
// Promises   all that are given the same digests come to the same outcome. Whoever has the bits
//            from others is no witness: it may have them from the one that is wrong.
// Does not   gather the digests.
// Threads    one.
// Errors     kCorrupt: this worker must end. kPeerLost: others must, and this group with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/result.h"

namespace keel {

class EpochGroup;

class HeldBits {
 public:
  // `what`: of which all should hold the same, for messages.
  explicit HeldBits(std::string what = "state") : what_(std::move(what)) {}

  // Of a member that has made the steps itself; of one that has received what came of them.
  void Add(int rank, const std::optional<Digest>& digest);
  void AddReceived(int rank, const std::optional<Digest>& digest);

  // Before that step.
  Status Judge(const EpochGroup& group, uint64_t step) const;
  // The same between two steps. Where it fails it is the last thing that the members do together,
  // so that each of them comes to know.
  Status JudgeAndPart(EpochGroup& group, uint64_t step) const;

 private:
  struct Held {
    std::vector<int> ranks;
    std::vector<std::optional<Digest>> digests;
  };
  Error Differ(const EpochGroup& group, uint64_t step) const;
  Error GoOnWithout(const EpochGroup& group, uint64_t step, const std::vector<int>& wrong,
                    const std::string& whose) const;

  const std::string what_;
  Held own_;
  Held received_;
};

}  // namespace keel
