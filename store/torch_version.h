// Whether this process runs with the LibTorch that our code was compiled for. Another one may
// be loaded without a word, and then have classes of another shape.
// Promises   asks nothing of LibTorch that would choose its kernels, so it may come first of all.
// Does not   reach a program that the dynamic linker refuses for a missing symbol, which is before
//            main(); or know a LibTorch that does not tell its version (before 2.9): two of those
//            pass for the same.
// Threads    any.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace keel {

struct TorchVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
};

// What was compiled for one version fits all of its minor version. `loaded` is empty if that
// LibTorch does not tell; `tells` says whether the one that was compiled for does. `library` is
// the file of the one that is loaded.
Status CheckTorchVersion(const TorchVersion& compiled, bool tells,
                         const std::optional<TorchVersion>& loaded, const std::string& library);

// Of this process. kInvalid, with what to do.
Status CheckTorchVersion();

}  // namespace keel
