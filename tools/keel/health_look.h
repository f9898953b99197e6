// HealthLook: looks at this machine for `keel health`: its memory's counters, its machine checks,
// the kernel's log, its GPUs.
// Promises   changes nothing. What cannot be read, for a lack of rights or otherwise, is a finding.
// Does not   conclude (tools/keel/health_findings.h, tools/keel/health_gpu.h,
//            tools/keel/health_xid.h, tools/keel/health_gpu_product.h).
// Threads    one at a time: programs that it starts end before the call does.
// Errors     kNotFound, kInvalid: the program that the user names cannot be run. Those of a file,
//            for the log that the user names.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "tools/keel/health_findings.h"

namespace keel {

// `root`: what stands before "/sys", "/proc" and "/dev"; empty, but for tests.
std::vector<HealthFinding> LookAtMemory(Files& files, const std::string& root);
HealthFinding LookAtMachineChecks(Files& files, const std::string& root);

// `path`: the user's; empty: the kernel's own log.
Result<std::vector<HealthFinding>> LookAtXids(const std::string& path, Duration limit,
                                              const std::string& root);

struct ProgramQuestion {
  std::string program;                 // a path, or a name to look up in PATH
  bool is_named_by_user = false;       // then it must be there
  Duration limit{0};                   // for all of its runs
};

struct GpuLook {
  std::vector<HealthFinding> findings = {};
  bool has_gpu = false;     // of NVIDIA's
  bool is_silent = false;   // nvidia-smi failed, hung, or was not understood
};
// nvidia-smi.
Result<GpuLook> AskGpus(const ProgramQuestion& question, Files& files, const std::string& root);

// Has a Python compute on all GPUs for so many seconds, which `limit` does not count.
// `module`: the path of gpu_product.py.
Result<std::vector<HealthFinding>> ComputeOnGpus(const ProgramQuestion& question,
                                                 const std::string& module, double seconds);

}  // namespace keel
