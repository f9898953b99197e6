// FindTorch: which PyTorch on this machine serves keelrun, whose store is made of its libraries.
// Promises   in this order: KEEL_TORCH; the link lib/evenkeel/torch of the installation; what lies
//            beside the package (a wheel's); that of the Python that starts the workers; those of
//            the active environments. What the user named (the first two) is taken or refused: no
//            other one takes its place.
// Does not   start Python or load a library: it reads names of folders, and which version they say.
// Threads    any.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/files.h"

namespace keel {

// Where a PyTorch was looked for.
struct TorchPlace {
  std::string origin;              // why there: "KEEL_TORCH"
  std::string folder;              // what would hold lib/libtorch_cpu.so
  bool is_named = false;           // by the user
  bool is_there = false;
  std::string version = {};        // "2.11"; empty: it does not say
};

struct TorchChoice {
  enum class Verdict {
    kFound,
    kNowhere,      // there is none in any of the places
    kNotThere,     // none in the place that the user named
    kNoEngine,     // there is one, and nothing of ours was made for it
  };
  Verdict verdict = Verdict::kNowhere;
  std::string folder = {};
  std::string version = {};
  std::string detail = {};         // what people read
};

// `engines`: the versions that there is a store module for, as "2.11".
TorchChoice ChooseTorch(const std::vector<TorchPlace>& places,
                        const std::vector<std::string>& engines);

// The places, in that order. `package`: the folder of our package for Python, which holds bin/.
// `python`: the interpreter of the workers, as a path or a name to be found in PATH; empty: none.
std::vector<TorchPlace> PlacesOfTorch(Files& files, const std::string& package,
                                      const Environment& environment, const std::string& python);

// What the PyTorch in `folder` says that it is, as "2.11.0+cu130": a wheel in version.py, an
// unpacked LibTorch in build-version. Empty: it does not say.
std::string TorchVersionIn(Files& files, const std::string& folder);

// The versions that `package` has store modules for, in order.
std::vector<std::string> EnginesOf(Files& files, const std::string& package);

// What to add to PYTHONPATH so that scripts find the package that came with this keelrun: nothing
// where it lies in the site-packages of a Python, or where the workers' Python has one of its own.
std::string PackageForWorkers(Files& files, const std::string& package,
                              const Environment& environment, const std::string& python);

}  // namespace keel
