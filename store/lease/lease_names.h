// LeaseNames: how the records of a lease are called where they have names, in a directory or in a
// bucket: JOB.lease/term-7, JOB.lease/beat-7.
// Promises   parsing takes exactly what making gives. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/lease/lease.h"

namespace keel {

// In JSON a byte may need six: of the text, and of the names.
inline constexpr uint64_t kLeaseRecordBytesMax = 64 << 10;
static_assert(2 * 6 * kLeaseTextBytesMax < kLeaseRecordBytesMax - 1024);

// The folder of a job's lease: its name, with all but letters, digits and _-. as %XX.
std::string LeaseFolderName(const std::string& job);
// That name, as a claim bears it.
std::string LeaseJobName(std::string_view job);

std::string LeaseTermName(int64_t term);
std::string LeaseBeatName(int64_t term);
// The number in "term-7", "beat-7"; nothing for any other name.
std::optional<int64_t> LeaseTermIn(std::string_view name);
std::optional<int64_t> LeaseBeatIn(std::string_view name);

// "term 7", for people.
std::string LeaseTermText(int64_t term);

// A claim that is gone when it is to be read was removed as an old one, so there are newer ones: it
// is looked for so often.
inline constexpr int kLeaseLooksMax = 5;

// Whether the answer is final: somebody else holds the lease.
bool IsLeaseLost(const Status& status);

// kInvalid: names that are too long.
Status CheckLeaseOwner(const LeaseOwner& owner);

}  // namespace keel
