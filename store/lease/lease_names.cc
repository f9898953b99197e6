// Names that every file system and every store takes.
#include "store/lease/lease_names.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/file_helpers.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr std::string_view kTermPrefix = "term-";
constexpr std::string_view kBeatPrefix = "beat-";
constexpr size_t kFolderBytesMax = 128;

std::string NameOf(std::string_view prefix, int64_t term) {
  return std::string(prefix) + std::to_string(term);
}

std::optional<int64_t> NumberIn(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const Result<int64_t> number = ParseInteger(name.substr(prefix.size()));
  if (!number.ok() || *number < 1 || *number > kLeaseTermMax) return std::nullopt;
  if (NameOf(prefix, *number) != name) return std::nullopt;
  return *number;
}

}  // namespace

std::string LeaseJobName(std::string_view job) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  for (const char letter : job) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' ||
                          (letter == '.' && !escaped.empty());
    const auto byte = static_cast<unsigned char>(letter);
    if (is_plain) {
      escaped += letter;
    } else {
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

std::string LeaseFolderName(const std::string& job) {
  std::string name = LeaseJobName(job);
  if (name.size() > kFolderBytesMax) {
    name = name.substr(0, kFolderBytesMax - 33) + "-" + DigestOf(BytesOf(job)).Hex();
  }
  return name + ".lease";
}

std::string LeaseTermName(int64_t term) { return NameOf(kTermPrefix, term); }
std::string LeaseBeatName(int64_t term) { return NameOf(kBeatPrefix, term); }
std::optional<int64_t> LeaseTermIn(std::string_view name) { return NumberIn(name, kTermPrefix); }
std::optional<int64_t> LeaseBeatIn(std::string_view name) { return NumberIn(name, kBeatPrefix); }
std::string LeaseTermText(int64_t term) { return "term " + std::to_string(term); }

bool IsLeaseLost(const Status& status) {
  return !status.ok() &&
         (status.error().code == Code::kExists || status.error().code == Code::kStaleEpoch);
}

Status CheckLeaseOwner(const LeaseOwner& owner) {
  KEEL_CHECK(!owner.job.empty() && !owner.run.empty(), "a lease needs a job and its run");
  const size_t bytes = owner.job.size() + owner.run.size();
  if (bytes <= kLeaseTextBytesMax) return Ok();
  return Error{Code::kInvalid, "the names of a job and its run have " + std::to_string(bytes) +
                                   " bytes, a lease allows " + std::to_string(kLeaseTextBytesMax)};
}

}  // namespace keel
