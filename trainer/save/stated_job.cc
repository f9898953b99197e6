// Field by field.
#include "trainer/save/stated_job.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "trainer/numerics/fingerprint.h"

namespace keel {
namespace {

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<FingerprintCheck> CompareFingerprints(const std::string& ours, const std::string& theirs) {
  const auto parse = [](const std::string& text) -> Result<Fingerprint> {
    return text.empty() ? Fingerprint() : Fingerprint::Parse(text);
  };
  KEEL_TRY_ASSIGN(const Fingerprint our, parse(ours));
  KEEL_TRY_ASSIGN(const Fingerprint their, parse(theirs));
  Fingerprint parts[2][2];   // [never, inexact][ours, theirs]
  const Fingerprint* const whole[2] = {&our, &their};
  for (int side = 0; side < 2; ++side) {
    for (const auto& [name, value] : whole[side]->fields()) {
      // A job may be made longer.
      if (name == "steps") continue;
      // 0.1 did not tell it.
      const bool may_lack = name.starts_with("--") || name == "decay";
      if (may_lack && !whole[1 - side]->Has(name)) continue;
      const bool never = IsOneOf(name, {"lanes", "lane_batch", "seed", "samples", "layout"});
      parts[never ? 0 : 1][side].Add(name, value);
    }
  }
  const FingerprintSides sides{"this job", "the checkpoint"};
  return FingerprintCheck{Differences(parts[0][0], parts[0][1], sides),
                          Differences(parts[1][0], parts[1][1], sides)};
}

std::string TextIn(const Metadata& metadata, const std::string& name) {
  const auto held = metadata.find(name);
  const auto* text = held == metadata.end() ? nullptr : std::get_if<std::string>(&held->second);
  return text == nullptr ? std::string() : *text;
}

std::string FingerprintIn(const Metadata& metadata) {
  const std::string text = TextIn(metadata, "fingerprint");
  if (!text.empty()) return text;
  Fingerprint said;
  for (const char* name : {"lanes", "lane_batch", "seed", "samples"}) {
    const auto one = metadata.find(name);
    if (one != metadata.end()) said.Add(name, MetadataText(one->second));
  }
  return said.Text();
}

}  // namespace keel
