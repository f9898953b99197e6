// HostFacts: what this machine says about itself, where the launcher's defaults depend on it.
// Does not   ask a GPU driver: it counts what the kernel shows, and CUDA_VISIBLE_DEVICES narrows.
// Threads    any.
#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/random.h"
#include "elastic/notice/services.h"

namespace keel {

struct HostFacts {
  int cpus = 1;
  int gpus = 0;
  std::string unique_id;           // of this very start; names a --standalone job
  std::string python;              // the interpreter; empty: there is none
  std::string temporary_dir = "/tmp";
  bool is_compiled = false;        // the program to run begins as an ELF file does
  bool is_in_place = false;        // it has the mark of elastic/workers/program_mark.h
  std::optional<Cloud> cloud;      // whose machine this is; nothing: it does not say
  std::string numeric_names;       // the library to preload (store/numeric_names.h); empty: missing
};

// `program`: the first word behind the options, or empty.
HostFacts ReadHostFacts(const Environment& environment, const std::string& program, Random& random);

// What the machine's firmware says of itself, as in /sys/class/dmi/id.
struct DmiFacts {
  std::string sys_vendor = {};
  std::string product_name = {};
  std::string bios_version = {};
  std::string chassis_asset_tag = {};
};
std::optional<Cloud> CloudOf(const DmiFacts& dmi);

// How many of `present` GPUs CUDA_VISIBLE_DEVICES=`visible` leaves; the first bad entry ends it.
int VisibleGpus(const std::string& visible, int present);

}  // namespace keel
