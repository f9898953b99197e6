// One function for each check, and what they come to in one sentence.
#include "tools/keel/health_findings.h"

#include <algorithm>

#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kToldInASentence = 3;
constexpr size_t kQuotedBytesMost = 300;

// What the kernel's line of machine checks tells.
struct MachineChecks {
  uint64_t count = 0;
  uint64_t processors = 0;  // that met any
};

// "MCE:   0   0   Machine check exceptions"; none: there is no such line.
std::optional<MachineChecks> ReadMachineChecks(std::string_view interrupts) {
  const std::vector<std::string> lines = SplitList(interrupts, '\n');
  const auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& one) {
    return Trim(one).starts_with("MCE:");
  });
  if (line == lines.end()) return std::nullopt;
  MachineChecks checks;
  bool has_counts = false;
  for (const std::string& word : SplitList(Trim(*line).substr(4), ' ')) {
    const Result<int64_t> count = ParseInteger(word);
    if (!count.ok() || *count < 0) break;
    has_counts = true;
    checks.count += static_cast<uint64_t>(*count);
    checks.processors += *count > 0 ? 1 : 0;
  }
  if (!has_counts) return std::nullopt;
  return checks;
}

HealthFinding WrongProcessor(const ProcessorWork& work, const SquareMatrix& exact) {
  const size_t differing = work.product.has_value() ? CountDiffering(*work.product, exact) : 0;
  const std::string processor = "processor " + std::to_string(work.processor);
  std::string what = processor + " computed another product than it should: ";
  if (differing > 0) {
    what += std::to_string(differing) + " of " + std::to_string(kProductElements) +
            " elements differ";
  } else {
    what = processor + " computed the right product, and another digest of it than it should";
  }
  what += " (with " + work.kernel + "; " + std::to_string(work.wrong) + " of " +
          CountText(work.products, "product") + " were wrong)";
  return {"cpu", Fitness::kUnfit, what,
          "train on another machine, and have this processor replaced"};
}

HealthFinding OfController(const MemoryCounts& counts) {
  const auto times = [](uint64_t count, const std::string& kind) {
    return CountText(count, kind + " error");
  };
  if (!counts.uncorrected.has_value()) {
    return {"memory", Fitness::kUnknown,
            "the memory controller " + counts.controller + " does not tell its count of errors"};
  }
  std::string what = "the memory controller " + counts.controller + " has counted " +
                     times(*counts.uncorrected, "uncorrected");
  if (counts.corrected.has_value()) what += " and " + times(*counts.corrected, "corrected");
  if (*counts.uncorrected == 0) return {"memory", Fitness::kFit, what};
  return {"memory", Fitness::kUnfit, what,
          "have the memory module replaced that /sys/devices/system/edac/mc/" +
              counts.controller + " names; a restart of the machine begins the count anew"};
}

}  // namespace

std::string_view FitnessName(Fitness fitness) {
  switch (fitness) {
    case Fitness::kFit: return "fit";
    case Fitness::kUnfit: return "unfit";
    case Fitness::kUnknown: return "not known";
  }
  return "";
}

std::string ShortPrintable(std::string_view text) {
  return Printable(Beginning(text, kQuotedBytesMost));
}

bool IsFit(const std::vector<HealthFinding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const HealthFinding& one) {
    return one.fitness == Fitness::kUnfit;
  });
}

std::string HealthSentence(const std::vector<HealthFinding>& findings) {
  std::vector<std::string> unfit;
  std::vector<std::string> unknown;
  for (const HealthFinding& one : findings) {
    if (one.fitness == Fitness::kUnfit) unfit.push_back(one.what);
    const bool is_new = std::find(unknown.begin(), unknown.end(), one.check) == unknown.end();
    if (one.fitness == Fitness::kUnknown && is_new) unknown.push_back(one.check);
  }
  if (unfit.empty()) {
    return "This machine is fit to train" +
           (unknown.empty() ? "."
                            : ", as far as is known (not known: " + JoinList(unknown, ", ") + ").");
  }
  std::string text = "This machine is unfit to train: ";
  for (size_t i = 0; i < std::min(unfit.size(), kToldInASentence); ++i) {
    text += (i == 0 ? "" : "; ") + unfit[i];
  }
  if (unfit.size() <= kToldInASentence) return text + ".";
  return text + "; and " + CountText(unfit.size() - kToldInASentence, "more finding") + ".";
}

std::vector<HealthFinding> ProcessorFindings(const std::vector<ProcessorWork>& works,
                                             const SquareMatrix& exact) {
  if (works.empty()) {
    return {{"cpu", Fitness::kUnknown, "the system does not tell which processors may be used"}};
  }
  std::vector<HealthFinding> findings;
  uint64_t sound = 0;
  uint64_t products = 0;
  for (const ProcessorWork& work : works) {
    if (!work.trouble.empty()) {
      findings.push_back({"cpu", Fitness::kUnknown,
                          "processor " + std::to_string(work.processor) +
                              " could not be tried: " + work.trouble});
    } else if (work.wrong > 0) {
      findings.push_back(WrongProcessor(work, exact));
    } else {
      ++sound;
      products += work.products;
    }
  }
  if (sound == 0) return findings;
  findings.insert(findings.begin(),
                  {"cpu", Fitness::kFit,
                   CountText(sound, "processor") + " computed what they should, " +
                       CountText(products, "matrix product") + " in all"});
  return findings;
}

std::vector<HealthFinding> MemoryFindings(const std::vector<MemoryCounts>& controllers) {
  if (controllers.empty()) {
    return {{"memory", Fitness::kUnknown,
             "the kernel counts no errors of this machine's memory (no EDAC)"}};
  }
  std::vector<HealthFinding> findings;
  for (const MemoryCounts& counts : controllers) findings.push_back(OfController(counts));
  return findings;
}

HealthFinding MachineCheckFinding(std::string_view interrupts) {
  const std::optional<MachineChecks> checks = ReadMachineChecks(interrupts);
  if (!checks.has_value()) {
    return {"machine checks", Fitness::kUnknown, "/proc/interrupts has no count of them"};
  }
  if (checks->count == 0) {
    return {"machine checks", Fitness::kFit, "the kernel has met none since the machine started"};
  }
  return {"machine checks", Fitness::kUnfit,
          "since the machine started, the kernel has met " +
              CountText(checks->count, "machine check exception") + ", on " +
              CountText(checks->processors, "processor") +
              ": the hardware reported errors that it could not correct",
          "look for them in the kernel's log (dmesg, rasdaemon), have that part replaced, and "
          "restart the machine"};
}

}  // namespace keel
