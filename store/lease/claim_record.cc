// One line of JSON, and one with its digest.
#include "store/lease/claim_record.h"

#include "base/digest.h"
#include "base/file_helpers.h"
#include "base/json_fields.h"
#include "store/lease/lease_names.h"

namespace keel {

template <>
struct JsonFields<ClaimRecord> {
  static void Visit(auto& field, auto& record) {
    field("job", record.job);
    field("run", record.run);
    field("term", record.term);
    field("claimant", record.claimant);
    field("text", record.text);
  }
};

template <>
struct JsonFields<BeatRecord> {
  static void Visit(auto& field, auto& record) {
    field("claimant", record.claimant);
    field("count", record.count);
    field("released", record.released);
  }
};

namespace {

constexpr int64_t kVersion = 1;

template <class Record>
std::string TextOf(const Record& record) {
  Json json = Json::object();
  json["version"] = kVersion;
  WriteFields(json, record);
  const std::string line = DumpJson(json) + "\n";
  return line + DigestOf(BytesOf(line)).Hex() + "\n";
}

template <class Record>
Result<Record> Parse(std::string_view text) {
  const size_t end = text.find('\n') + 1;   // 0: there is none
  const std::string_view line = text.substr(0, end);
  if (end == 0 || text.substr(end) != DigestOf(BytesOf(line)).Hex() + "\n") {
    return Error{Code::kCorrupt, "its bytes are not what was written"};
  }
  KEEL_TRY_ASSIGN(const Json json, ParseJson(line));
  KEEL_TRY_ASSIGN(const int64_t version, Field<int64_t>(json, "version"));
  if (version != kVersion) {
    return Error{Code::kInvalid, "it is of version " + std::to_string(version) +
                                     ", where this program reads version " +
                                     std::to_string(kVersion)};
  }
  Record record;
  KEEL_TRY(ReadOnlyFields(json, record, 1));
  return record;
}

}  // namespace

std::string ClaimText(const ClaimRecord& record) { return TextOf(record); }
std::string BeatText(const BeatRecord& record) { return TextOf(record); }
Result<ClaimRecord> ParseClaim(std::string_view text) { return Parse<ClaimRecord>(text); }
Result<BeatRecord> ParseBeat(std::string_view text) { return Parse<BeatRecord>(text); }

Result<ClaimRecord> ParseClaimAt(const std::string& path, int64_t term, std::string_view text) {
  Result<ClaimRecord> claim = ParseClaim(text);
  if (!claim.ok()) return Error{Code::kCorrupt, path + ": " + claim.error().message};
  if (claim->term == term) return claim;
  return Error{Code::kCorrupt, path + ": it is the claim of " + LeaseTermText(claim->term)};
}

}  // namespace keel
