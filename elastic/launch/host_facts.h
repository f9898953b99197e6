// HostFacts: what the launcher's defaults depend on, as found on this machine.
// Does not   ask a GPU driver: it counts the GPUs that the kernel shows, less those that
//            CUDA_VISIBLE_DEVICES hides.
// Threads    any.
#pragma once

#include <optional>
#include <string>

#include "base/environment.h"
#include "base/random.h"
#include "elastic/notice/services.h"
#include "store/port_range.h"

namespace keel {

struct HostFacts {
  std::string name;                // as the system has it
  int cpus = 1;                    // that the launcher may use
  int gpus = 0;
  std::string unique_id;           // of this start of the launcher; names a --standalone job
  std::string python;              // the interpreter; empty: there is none
  std::string temporary_dir = "/tmp";
  bool is_compiled = false;        // the program to run begins like an ELF file
  bool is_in_place = false;        // it has the mark of elastic/workers/program_mark.h
  std::optional<Cloud> cloud;      // whose machine this is; empty: unknown
  PortRange kernel_ports;          // from which the kernel picks for all; is_any(): unknown
  std::string numeric_names;       // the library to preload (store/numeric_names.h); empty: missing
  bool is_of_package = false;      // as IsScriptOfPackage() says
};

// `program`: the first word after the options, or empty.
HostFacts ReadHostFacts(const Environment& environment, const std::string& program, Random& random);

// What the machine's firmware says about itself, as in /sys/class/dmi/id.
struct DmiFacts {
  std::string sys_vendor = {};
  std::string product_name = {};
  std::string bios_version = {};
  std::string chassis_asset_tag = {};
};
std::optional<Cloud> CloudOf(const DmiFacts& dmi);

// Of the text of /proc/sys/net/ipv4/ip_local_port_range.
PortRange KernelPorts(const std::string& text);

// How many of `present` GPUs CUDA_VISIBLE_DEVICES=`visible` leaves; the first bad entry ends it.
int VisibleGpus(const std::string& visible, int present);

}  // namespace keel
