// What looks like a violation, but is none.
#pragma once

#include <fstream>
#include <random>

namespace keel {

// Nobody calls rand(), abort() or std::getenv() here; it is a comment. See TODO(#12).
class Group {
 public:
  virtual void abort() = 0;
  void Rename(int a);
};

}  // namespace keel
