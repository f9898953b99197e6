// Fingerprint: everything that the bits of a run depend on besides its seed, as a list of names and
// values that two workers, or a worker and a manifest, can compare.
// Promises   a comparison names each field that differs, with both values. Text() is one line that
//            reads back as the same fingerprint: name=value name=value.
// Does not   find out the values: trainer/numerics/numerics.h does; the engine adds its own (data,
//            layout).
// Threads    a plain value.
// Errors     kInvalid: text that is no fingerprint.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace keel {

class Fingerprint {
 public:
  // Fields keep the order in which people read them. A name is given once, and consists of small
  // letters, digits and '_', '-', '.'; blanks in a value become '_'.
  void Add(std::string_view name, std::string_view value);

  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }
  bool Has(std::string_view name) const;
  std::string Text() const;
  static Result<Fingerprint> Parse(std::string_view text);
  bool operator==(const Fingerprint&) const = default;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct FingerprintSides {
  std::string ours = "here";     // "this worker"
  std::string theirs = "there";  // "the job", "the checkpoint"
};

// Empty if they are equal, else
// "threads is 2 in this worker and 1 in the job; cpu is AVX512 in this worker and AVX2 in the job".
std::string Differences(const Fingerprint& ours, const Fingerprint& theirs,
                        const FingerprintSides& sides);

}  // namespace keel
