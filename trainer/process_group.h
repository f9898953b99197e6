// Process groups for plain data parallelism: the members of one epoch, able to sum tensors
// together.
// Promises   every member that calls with the same store prefix and size ends up in one group, or
//            all get an error within the limit.
// Does not   survive the loss of a member: an operation then fails, and the group is of no more
//            use.
// Threads    one thread at a time per group.
// Errors     kTimeout, kPeerLost, kNoDevice, kForeign.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

struct GroupSpec {
  c10::intrusive_ptr<c10d::Store> store;
  std::string prefix;  // of all keys of this group in the store
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";  // numeric address of this host that the others can reach
  Duration limit = std::chrono::seconds(60);  // for building it and for each operation
};

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

Result<Group> MakeGlooGroup(const GroupSpec& spec);

}  // namespace keel
