// HealthFindings: concludes from what was read and computed whether this machine is fit to train.
// Promises   pure; each check gives at least one finding, so that a reader sees what was looked
//            at. What is unfit has a cure. What nobody can tell is not known, and no fault.
// Does not   look at anything (tools/keel/health_look.h), or at GPUs (tools/keel/health_gpu.h).
// Threads    pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/keel/health_cpu.h"
#include "tools/keel/health_product.h"

namespace keel {

enum class Fitness { kFit, kUnfit, kUnknown };

// "fit", "unfit", "not known"
std::string_view FitnessName(Fitness fitness);

struct HealthFinding {
  std::string check;      // what was looked at, in a word or two
  Fitness fitness = Fitness::kFit;
  std::string what;       // begins in small letters, since it stands within a sentence, too
  std::string cure = {};  // of what is unfit
  bool operator==(const HealthFinding&) const = default;
};

// What another program said, cut to a length that a finding may quote.
std::string ShortPrintable(std::string_view text);

bool IsFit(const std::vector<HealthFinding>& findings);

// All in one sentence, on one line: that it is fit, or what is unfit.
std::string HealthSentence(const std::vector<HealthFinding>& findings);

// `exact`: what each product should have been.
std::vector<HealthFinding> ProcessorFindings(const std::vector<ProcessorWork>& works,
                                             const SquareMatrix& exact);

// What one memory controller has counted; none: it does not tell.
struct MemoryCounts {
  std::string controller;  // "mc0"
  std::optional<uint64_t> uncorrected = {};
  std::optional<uint64_t> corrected = {};
};

std::vector<HealthFinding> MemoryFindings(const std::vector<MemoryCounts>& controllers);

// `interrupts`: the text of /proc/interrupts; empty if it cannot be read.
HealthFinding MachineCheckFinding(std::string_view interrupts);

}  // namespace keel
