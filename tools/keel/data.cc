// `keel data FILE`: what a file of training data holds, and whether its bits are still the same.
#include "base/text.h"
#include "tools/keel/commands.h"
#include "tools/keel/wording.h"
#include "trainer/record_file.h"
#include "trainer/token_file.h"

namespace keel {
namespace {

struct Seen {
  Json json;
  std::string text;
  Status whole = Ok();   // as far as it was checked
};

Seen Look(const TokenFile& file, bool verify) {
  const TokenHeader& header = file.header();
  Seen seen;
  seen.json = {{"kind", "tokens"},
               {"tokens", header.count},
               {"vocabulary", header.vocabulary},
               {"token_bytes", header.token_bytes},
               {"alphabet_bytes", header.alphabet.size()},
               {"digest", header.content.Hex()}};
  seen.text = CountText(header.count, "token") + " of " + BytesText(header.token_bytes) +
              ", vocabulary " + std::to_string(header.vocabulary) + "\n";
  if (!header.alphabet.empty()) {
    seen.text += "alphabet " + QuoteForLog(header.alphabet) + "\n";
  }
  seen.text += "digest " + header.content.Hex() + "\n";
  if (verify) seen.whole = file.Verify();
  return seen;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + JoinList(sizes, ", ") + "]";
}

Seen Look(const RecordFile& file, bool verify) {
  const RecordHeader& header = file.header();
  Seen seen;
  Json fields = Json::array();
  seen.text = CountText(header.count, "record") + " of " + BytesText(header.record_bytes()) + "\n";
  for (const RecordField& field : header.fields) {
    const std::string dtype(DtypeName(field.dtype));
    fields.push_back({{"name", field.name}, {"dtype", dtype}, {"shape", field.shape}});
    seen.text += "  " + field.name + " " + dtype + " " + ShapeText(field.shape) + "\n";
  }
  seen.json = {{"kind", "records"},
               {"records", header.count},
               {"record_bytes", header.record_bytes()},
               {"fields", std::move(fields)},
               {"digest", header.content.Hex()}};
  seen.text += "digest " + header.content.Hex() + "\n";
  if (verify) seen.whole = file.Verify();
  return seen;
}

Result<Seen> LookAt(const std::string& path, bool verify) {
  const auto tokens = TokenFile::Open(path);
  if (tokens.ok()) return Look(**tokens, verify);
  const auto records = RecordFile::Open(path);
  if (records.ok()) return Look(**records, verify);
  // Whose magic it has tells which of the two errors is meant.
  const bool token_magic = tokens.error().message.find("not a token file") == std::string::npos;
  const bool record_magic = records.error().message.find("not a record file") == std::string::npos;
  if (token_magic) return tokens.error();
  if (record_magic) return records.error();
  return Error{Code::kInvalid, path + " is neither a token file nor a record file; `keel tokens` "
                                      "and `keel records` make them"};
}

}  // namespace

OptionTable DataTable() {
  OptionTable table = CommandTable(
      "data", "Shows what a token file or a record file holds: training data, as `keel tokens` and "
              "`keel records` make it.",
      "FILE", "--verify: its content is not what was written");
  table.Add(Option::Flag("verify", false, "Read all of it and compare the digest"));
  table.AddExample("keel data train.tokens --verify", "Is it still what was written?");
  return table;
}

Result<Outcome> RunData(const World& world, const Options& options) {
  const std::string& path = options.positionals()[0];
  const bool verify = options.Flag("verify");
  KEEL_TRY_ASSIGN(Seen seen, LookAt(path, verify));
  Outcome outcome{{{"file", path}}, seen.text};
  outcome.json.update(seen.json);
  if (!verify) return outcome;
  outcome.json["whole"] = seen.whole.ok();
  outcome.text += seen.whole.ok() ? world.paint.Good("whole") + "\n"
                                  : world.paint.Bad("damaged") + " " +
                                        seen.whole.error().message + "\n";
  outcome.exit_code = seen.whole.ok() ? 0 : kExitNo;
  return outcome;
}

}  // namespace keel
