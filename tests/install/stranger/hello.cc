// A stranger's program that needs no LibTorch: includes and links what Evenkeel::base exports.
#include <iostream>

#include "base/result.h"

int main() {
  const keel::Error error{keel::Code::kPeerLost, "rank 2 is gone"};
  const keel::Result<int> step = error.Doing("step 7");
  std::cout << keel::CodeName(step.error().code) << ": " << step.error().message << "\n";
}
