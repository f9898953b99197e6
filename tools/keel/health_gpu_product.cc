// Each line that is an object with what we know is taken, and every other line is left.
#include "tools/keel/health_gpu_product.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr const char* kProductCheck = "gpu product";
constexpr size_t kGpusMost = 1024;
constexpr const char* kReplace = "train on another machine, and have this GPU replaced";
constexpr const char* kOtherPython =
    "name a Python whose PyTorch can use the GPUs (--python)";

// In what CUDA says of an error.
constexpr const char* kOfHardware[] = {
    "uncorrectable ECC error", "uncorrectable NVLink error", "hardware stack error",
    "illegal memory access",   "illegal instruction",        "misaligned address",
    "invalid program counter", "unspecified launch failure",
    "contained memory error"};

std::string ShortWords(std::string_view words) {
  return ShortPrintable(Trim(words));
}

std::string WordsIn(const Json& json, const char* name) {
  const Result<std::string> text = Field<std::string>(json, name);
  return text.ok() ? ShortWords(*text) : "";
}

uint64_t WholeIn(const Json& json, const char* name) {
  const Result<uint64_t> count = Field<uint64_t>(json, name);
  return count.ok() ? *count : 0;
}

const Json* ListIn(const Json& json, const char* name) {
  const Result<const Json*> list = ArrayField(json, name);
  return list.ok() ? *list : nullptr;
}

// "GPU 1 (GPU-bb, 00000000:5E:00.0)", as of nvidia-smi's words; more where it does not say that.
std::string NameOf(uint64_t index, const Json& about) {
  std::vector<std::string> more;
  for (const char* field : {"uuid", "bus"}) {
    if (const std::string text = WordsIn(about, field); !text.empty()) more.push_back(text);
  }
  if (more.empty()) more.push_back(WordsIn(about, "name"));
  const std::string inside = JoinList(more, ", ");
  return "GPU " + std::to_string(index) + (inside.empty() ? "" : " (" + inside + ")");
}

struct ProductAnswer {
  std::map<uint64_t, std::string> names;   // of the GPUs that it began with, by their index
  std::map<uint64_t, Json> results;
  std::string trouble;
};

void TakeLine(const Json& json, ProductAnswer* answer) {
  if (const Json* const gpus = ListIn(json, "gpus")) {
    for (const Json& about : *gpus) {
      const Result<uint64_t> index = Field<uint64_t>(about, "index");
      if (!index.ok() || answer->names.size() >= kGpusMost) continue;
      answer->names[*index] = NameOf(*index, about);
    }
  } else if (const Result<uint64_t> gpu = Field<uint64_t>(json, "gpu"); gpu.ok()) {
    if (answer->names.contains(*gpu)) answer->results[*gpu] = json;
  } else if (const std::string trouble = WordsIn(json, "trouble"); !trouble.empty()) {
    answer->trouble = trouble;
  }
}

ProductAnswer ReadAnswer(std::string_view out) {
  ProductAnswer answer;
  while (!out.empty()) {
    const size_t length = std::min(out.find('\n'), out.size());
    const Result<Json> json = ParseJson(out.substr(0, length));
    if (json.ok() && json->is_object()) TakeLine(*json, &answer);
    out.remove_prefix(std::min(length + 1, out.size()));
  }
  return answer;
}

// "bfloat16: 3 of 4096 elements differ, the first at row 4, column 17: 12, not 13 (64 x 96 by ..."
std::string WhatDiffers(const Json& wrong) {
  std::string what = WordsIn(wrong, "kind") + ": ";
  const uint64_t differing = WholeIn(wrong, "differing");
  if (differing > 0) {
    what += std::to_string(differing) + " of " + std::to_string(WholeIn(wrong, "elements")) +
            " elements differ, the first at row " + std::to_string(WholeIn(wrong, "row")) +
            ", column " + std::to_string(WholeIn(wrong, "column")) + ": " +
            WordsIn(wrong, "found") + ", not " + WordsIn(wrong, "right");
  } else {
    what += "the processor finds it right, where the GPU found that elements differ";
  }
  return what + " (" + WordsIn(wrong, "shape");
}

std::vector<Json> WrongOnes(const Json& result) {
  std::vector<Json> wrong;
  if (const Json* const list = ListIn(result, "wrong")) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(wrong),
                 [](const Json& one) { return one.is_object(); });
  }
  return wrong;
}

// How many GPUs have computed anything.
size_t CountComputed(const ProductAnswer& answer) {
  return static_cast<size_t>(std::count_if(
      answer.results.begin(), answer.results.end(),
      [](const auto& one) { return WholeIn(one.second, "products") > 0; }));
}

// What differs alike on all of several GPUs: no fault of one of them explains that.
std::set<std::string> DiffersAlike(const ProductAnswer& answer) {
  std::map<std::string, size_t> counts;
  for (const auto& [index, result] : answer.results) {
    for (const Json& one : WrongOnes(result)) ++counts[WhatDiffers(one)];
  }
  std::set<std::string> alike;
  for (const auto& [what, count] : counts) {
    if (count > 1 && count == CountComputed(answer)) alike.insert(what);
  }
  return alike;
}

// What one GPU has come to. False: it is well, and nothing was added.
bool AddFaults(const std::string& name, const Json& result, const std::set<std::string>& alike,
               std::vector<HealthFinding>* findings) {
  const size_t before = findings->size();
  const std::string of = " of " + CountText(WholeIn(result, "products"), "product");
  for (const Json& one : WrongOnes(result)) {
    const std::string what = WhatDiffers(one);
    if (alike.contains(what)) continue;
    findings->push_back({kProductCheck, Fitness::kUnfit,
                         name + " computed another product than it should, with " + what + "; " +
                             std::to_string(WholeIn(one, "times")) + of + " were wrong)",
                         kReplace});
  }
  if (const Result<bool> hung = Field<bool>(result, "hung"); hung.ok() && *hung) {
    findings->push_back({kProductCheck, Fitness::kUnfit,
                         name + " did not finish matrix products that take milliseconds",
                         "restart the machine; if the GPU hangs again, have it replaced"});
  }
  if (const std::string trouble = WordsIn(result, "trouble"); !trouble.empty()) {
    const bool is_fault = IsOfHardware(trouble);
    findings->push_back({kProductCheck, is_fault ? Fitness::kUnfit : Fitness::kUnknown,
                         name + " could not compute a matrix product: " + trouble,
                         is_fault ? kReplace : ""});
  }
  return findings->size() > before;
}

// Leaves of `kinds` those that this GPU has computed with, too.
void KeepKinds(const Json& result, std::optional<std::vector<std::string>>* kinds) {
  const auto told = Field<std::vector<std::string>>(result, "kinds");
  std::vector<std::string> here;
  if (told.ok()) here = *told;
  if (!kinds->has_value()) *kinds = here;
  std::erase_if(**kinds, [&](const std::string& one) {
    return std::find(here.begin(), here.end(), one) == here.end();
  });
}

// What it said last, where that may say why.
std::string LastWords(const GpuProductRun& run) {
  const std::vector<std::string> lines = SplitList(run.err.empty() ? run.out : run.err, '\n');
  return lines.empty() ? "" : ", and says \"" + ShortWords(lines.back()) + "\"";
}

}  // namespace

bool IsOfHardware(std::string_view words) {
  return std::any_of(std::begin(kOfHardware), std::end(kOfHardware), [&](const char* one) {
    return words.find(one) != std::string_view::npos;
  });
}

HealthFinding NoGpuProduct(const std::string& why, const std::string& cure) {
  return {kProductCheck, Fitness::kUnknown, why, cure};
}

std::vector<HealthFinding> GpuProductFindings(const GpuProductRun& run) {
  const ProductAnswer answer = ReadAnswer(run.out);
  std::vector<HealthFinding> findings;
  uint64_t well = 0;
  uint64_t products = 0;
  const std::set<std::string> alike = DiffersAlike(answer);
  std::vector<std::string> missing;
  std::optional<std::vector<std::string>> kinds;
  for (const auto& [index, name] : answer.names) {
    const auto result = answer.results.find(index);
    if (result == answer.results.end()) {
      missing.push_back(name);
    } else if (!AddFaults(name, result->second, alike, &findings)) {
      const uint64_t computed = WholeIn(result->second, "products");
      if (computed == 0) missing.push_back(name);
      if (computed == 0 || !WrongOnes(result->second).empty()) continue;
      ++well;
      products += computed;
      KeepKinds(result->second, &kinds);
    }
  }
  if (well > 0) {
    findings.insert(findings.begin(),
                    {kProductCheck, Fitness::kFit,
                     CountText(well, "GPU") + " computed what they should, " +
                         CountText(products, "matrix product") + " in all (" +
                         ShortWords(JoinList(*kinds, ", ")) + ")"});
  }
  for (const std::string& what : alike) {
    findings.push_back({kProductCheck, Fitness::kUnknown,
                        "all " + CountText(CountComputed(answer), "GPU") +
                            " computed the same other product than they should, with " + what +
                            "), which their kernels may do, and no fault of one GPU"});
  }
  if (!answer.trouble.empty()) {
    const bool is_fault = !answer.names.empty() && IsOfHardware(answer.trouble);
    findings.push_back({kProductCheck, is_fault ? Fitness::kUnfit : Fitness::kUnknown,
                        run.program + " computed no product: " + answer.trouble,
                        is_fault                ? kReplace
                        : answer.names.empty() ? kOtherPython
                                               : ""});
  } else if (!run.trouble.empty() || answer.names.empty() || !missing.empty()) {
    std::string what = run.program + " " + (run.trouble.empty() ? "ended" : run.trouble);
    if (answer.names.empty() || !missing.empty()) what += ", and told of no product";
    if (!missing.empty()) what += " of " + JoinList(missing, ", ");
    findings.push_back({kProductCheck, Fitness::kUnknown, what + LastWords(run)});
  }
  return findings;
}

}  // namespace keel
