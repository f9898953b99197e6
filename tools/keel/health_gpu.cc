// A table of faults: the field, which of its values is one, and what to say and do then.
#include "tools/keel/health_gpu.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace keel {
namespace {

constexpr const char* kIndex = "index";
constexpr const char* kUuid = "uuid";
constexpr const char* kBus = "pci.bus_id";
constexpr const char* kSlowdown = "clocks_throttle_reasons.hw_slowdown";
constexpr const char* kThermalSlowdown = "clocks_throttle_reasons.hw_thermal_slowdown";

constexpr const char* kReset =
    "reset the GPU (nvidia-smi --gpu-reset) or restart the machine before a job uses it";
constexpr const char* kCool = "look after its cooling and its power supply";

struct GpuFault {
  const char* field;
  const char* what;  // where the value is a number, that stands before it
  const char* cure;
};
constexpr GpuFault kGpuFaults[] = {
    {"ecc.errors.uncorrected.volatile.total", "uncorrected errors of its memory", kReset},
    {"remapped_rows.pending", "rows of its memory that are still to be remapped", kReset},
    {"remapped_rows.failure", "rows of its memory that could not be remapped",
     "have the GPU replaced"},
    {kSlowdown, "clocks that its hardware holds down", kCool},
    {kThermalSlowdown, "clocks that its hardware holds down for heat", kCool},
    {"retired_pages.pending", "pages of its memory that are still to be retired", kReset}};

enum class GpuValue { kGood, kFault, kNotTold, kGpuLost };

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char one) { return static_cast<char>(std::tolower(one)); });
  return lower;
}

bool HoldsText(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char one) {
    return one >= '0' && one <= '9';
  });
}

GpuValue Judge(const std::string& value) {
  const std::string lower = LowerCase(value);
  if (lower == "no" || lower == "not active" || lower == "0") return GpuValue::kGood;
  if (lower == "yes" || lower == "active") return GpuValue::kFault;
  for (const char* words : {"gpu is lost", "requires reset", "unknown error", "err!"}) {
    if (HoldsText(lower, words)) return GpuValue::kGpuLost;
  }
  if (!IsNumber(lower)) return GpuValue::kNotTold;
  return lower.find_first_not_of('0') == std::string::npos ? GpuValue::kGood : GpuValue::kFault;
}

std::string ValueOf(const GpuReading& gpu, const std::string& field) {
  const auto found = gpu.find(field);
  return found == gpu.end() ? "" : found->second;
}

// "GPU 3 (GPU-5d2c..., 00000000:3B:00.0)"
std::string GpuName(const GpuReading& gpu) {
  std::string name = "GPU " + ShortPrintable(ValueOf(gpu, kIndex));
  std::string more = ShortPrintable(ValueOf(gpu, kUuid));
  const std::string bus = ShortPrintable(ValueOf(gpu, kBus));
  if (!more.empty() && !bus.empty()) more += ", ";
  more += bus;
  return more.empty() ? name : name + " (" + more + ")";
}

std::string GpuFaultText(const GpuFault& fault, const std::string& value) {
  const bool is_counted = std::string_view(fault.field).starts_with("ecc.");
  return std::string(" has ") + (is_counted ? value + " " : "") + fault.what;
}

void AddGpuFindings(const GpuReading& gpu, std::vector<HealthFinding>* findings) {
  const std::string name = GpuName(gpu);
  std::vector<std::string> not_told;
  bool is_fit = true;
  const bool is_hot = Judge(ValueOf(gpu, kThermalSlowdown)) == GpuValue::kFault;
  for (const GpuFault& fault : kGpuFaults) {
    const std::string value = ValueOf(gpu, fault.field);
    const GpuValue judged = Judge(value);
    if (judged == GpuValue::kNotTold) not_told.emplace_back(fault.field);
    if (judged == GpuValue::kGpuLost) {
      findings->push_back({"gpu", Fitness::kUnfit,
                           name + " does not answer: nvidia-smi says " + Shown(value) + " of " +
                               fault.field,
                           kReset});
      return;
    }
    // Heat is one of the reasons of a slowdown: the more exact one is told.
    if (judged != GpuValue::kFault || (fault.field == kSlowdown && is_hot)) continue;
    is_fit = false;
    findings->push_back({"gpu", Fitness::kUnfit, name + GpuFaultText(fault, value), fault.cure});
  }
  if (!is_fit) return;
  const bool tells_nothing = not_told.size() == std::size(kGpuFaults);
  std::string what = name + (tells_nothing ? "" : " tells of no fault");
  if (!not_told.empty()) {
    what += (tells_nothing ? " does not tell " : ", and does not tell ") +
            JoinList(not_told, ", ");
  }
  findings->push_back({"gpu", tells_nothing ? Fitness::kUnknown : Fitness::kFit, what});
}

bool AreHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char one) {
    return std::isxdigit(one) != 0;
  });
}

}  // namespace

std::vector<std::string> GpuFields() {
  std::vector<std::string> fields = {kIndex, kUuid, kBus};
  for (const GpuFault& fault : kGpuFaults) fields.emplace_back(fault.field);
  return fields;
}

std::vector<std::string> RemappedRowsFields() {
  return {"gpu_uuid", "remapped_rows.pending", "remapped_rows.failure"};
}

GpuAnswer ParseGpuAnswer(const std::vector<std::string>& fields, std::string_view text) {
  GpuAnswer answer;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.empty()) continue;
    std::vector<std::string> values;
    for (size_t from = 0; from <= line.size();) {
      const size_t to = std::min(line.find(',', from), line.size());
      values.emplace_back(Trim(line.substr(from, to - from)));
      from = to + 1;
    }
    GpuReading gpu;
    for (size_t i = 0; i < std::min(fields.size(), values.size()); ++i) {
      gpu[fields[i] == "gpu_uuid" ? kUuid : fields[i]] = values[i];
    }
    const auto index = gpu.find(kIndex);
    if (values.size() != fields.size() || (index != gpu.end() && !IsNumber(index->second))) {
      answer.odd_lines.emplace_back(line);
    } else {
      answer.gpus.push_back(std::move(gpu));
    }
  }
  return answer;
}

void AddReadings(const std::vector<GpuReading>& more, std::vector<GpuReading>* gpus) {
  for (const GpuReading& one : more) {
    const std::string uuid = ValueOf(one, kUuid);
    const auto same = std::find_if(gpus->begin(), gpus->end(), [&](const GpuReading& gpu) {
      return !uuid.empty() && ValueOf(gpu, kUuid) == uuid;
    });
    if (same != gpus->end()) same->insert(one.begin(), one.end());
  }
}

std::optional<std::string> UnknownField(std::string_view words) {
  constexpr std::string_view kBefore = "Field \"";
  constexpr std::string_view kBehind = "\" is not a valid field to query";
  const size_t end = words.find(kBehind);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t begin = words.substr(0, end).rfind(kBefore);
  if (begin == std::string_view::npos) return std::nullopt;
  return std::string(words.substr(begin + kBefore.size(), end - begin - kBefore.size()));
}

bool NamesGpu(std::string_view words) {
  if (HoldsText(words, "GPU-")) return true;
  // "0000:3B:00.0": what stands around its second colon
  for (size_t at = words.find(':'); at != std::string_view::npos; at = words.find(':', at + 1)) {
    if (at < 4 || words.size() < at + 8) continue;
    const std::string_view bus = words.substr(at - 4, 12);
    if (bus.size() == 12 && AreHex(bus.substr(0, 4)) && AreHex(bus.substr(5, 2)) &&
        bus[7] == ':' && AreHex(bus.substr(8, 2)) && bus[10] == '.') {
      return true;
    }
  }
  return false;
}

std::vector<HealthFinding> GpuFindings(const std::vector<GpuReading>& gpus) {
  std::vector<HealthFinding> findings;
  for (const GpuReading& gpu : gpus) AddGpuFindings(gpu, &findings);
  return findings;
}

HealthFinding SilentGpus(const std::string& what, std::string_view words,
                         const std::string& device) {
  const std::vector<std::string> lines = SplitList(words, '\n');
  std::string told = what;
  if (!lines.empty()) told += ", and says \"" + ShortPrintable(lines.front()) + "\"";
  if (device.empty() && !NamesGpu(words)) {
    return {"gpu", Fitness::kUnknown, told + "; there is no GPU of NVIDIA's in /dev"};
  }
  if (!device.empty()) told += "; there is " + device;
  return {"gpu", Fitness::kUnfit, told,
          "restart the machine; if a GPU is still not found then, have it replaced"};
}

}  // namespace keel
