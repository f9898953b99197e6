// FoldStack: adds the nodes of a sum over lanes, given in lane order, as the tree of
// trainer/numerics/lanes.h says. It keeps only as many values as a binary counter has digits.
// Promises   the order of every addition depends on the lanes only, not on the nodes in which they
//            come.
// Does not   know how to add: the caller's function does, once for each node of the tree.
// Threads    one at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/numerics/lanes.h"

namespace keel {

template <class Value>
class FoldStack {
 public:
  struct Entry {
    LaneNode node;
    Value value;
  };

  // `add(left, right)` returns left + right. `node` begins where the former one ended.
  template <class Add>
  void Push(LaneNode node, Value value, Add&& add) {
    KEEL_CHECK(entries_.empty() || entries_.back().node.end() == node.begin,
               "lane " << node.begin << " after lane " << entries_.back().node.end() - 1);
    Entry top{node, std::move(value)};
    while (!entries_.empty() && MakesNode(entries_.back().node, top.node)) {
      top.value = add(std::move(entries_.back().value), std::move(top.value));
      top.node = {entries_.back().node.begin, 2 * top.node.size};
      entries_.pop_back();
    }
    entries_.push_back(std::move(top));
  }

  // Returns the whole sum: the nodes that remain are added from left to right. Leaves the stack
  // empty.
  template <class Add>
  Value Finish(Add&& add) {
    KEEL_CHECK(!entries_.empty() && entries_.front().node.begin == 0,
               "the sum lacks its first lanes: " << entries_.size() << " nodes");
    Value sum = std::move(entries_.front().value);
    for (size_t i = 1; i < entries_.size(); ++i) {
      sum = add(std::move(sum), std::move(entries_[i].value));
    }
    entries_.clear();
    return sum;
  }

  // The largest nodes of what was pushed, in lane order.
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry> Take() { return std::exchange(entries_, {}); }
  void Clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace keel
