// A log has lines of all kinds; those of the driver are known by their first words.
#include "tools/keel/health_xid.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <regex>
#include <set>

#include "base/text.h"
#include "tools/keel/xid_table.h"

namespace keel {
namespace {

constexpr const char* kXidCheck = "xid";
constexpr std::string_view kXidBegins = "NVRM: Xid (";
constexpr std::string_view kStartBegins = "Linux version ";
constexpr size_t kBusBytesMost = 60;
constexpr size_t kBeforeBytesMost = 300;
constexpr size_t kXidWordsMost = 200;
constexpr size_t kNumberDigitsMost = 5;
constexpr size_t kSeenMost = 256;
constexpr size_t kXidsToldMost = 8;
// The kernel's own first line has this number, and is lost where its memory for the log is full.
constexpr int64_t kFirstSequence = 0;

bool IsDigit(char one) { return one >= '0' && one <= '9'; }

// "6,339,5140900,-;": which record it is, and how many microseconds after the start it was made.
struct RecordHead {
  int64_t sequence = 0;
  Duration at{0};
};
std::optional<RecordHead> ReadHead(std::string_view line) {
  const size_t end = line.find(';');
  if (end == std::string_view::npos || !IsDigit(line[0])) return std::nullopt;
  const std::vector<std::string> parts = SplitList(line.substr(0, std::min(end, size_t{200})));
  if (parts.size() < 4) return std::nullopt;
  const Result<int64_t> sequence = ParseInteger(parts[1]);
  const Result<int64_t> micros = ParseInteger(parts[2]);
  if (!sequence.ok() || !micros.ok() || *sequence < 0 || *micros < 0) return std::nullopt;
  if (*micros > Duration::max().count() / 1000) return std::nullopt;
  return RecordHead{*sequence, std::chrono::microseconds(*micros)};
}

// What stands before a message of the kernel, in the forms of dmesg, journalctl and syslog. Others
// write what they like behind a tag of their own, so that nothing but these is taken for one.
bool StandsBeforeMessages(std::string_view before) {
  if (before.empty()) return true;
  if (ReadHead(before).has_value()) return before.find(';') + 1 == before.size();
  if (before.size() > kBeforeBytesMost) return false;
  static const std::string stamps = R"((\[[^\]]*\] ?)*)";
  static const std::string when =
      R"(([A-Z][a-z]{2} +\d{1,2}( \d{4})? [\d:.]+|\d{4}-\d\d-\d\dT\S+|\d+\.\d+|\[[ \d.]+\])"
      R"(|([A-Z][a-z]{2} )?\d{4}-\d\d-\d\d \d\d:[\d:.]+( [A-Z+\-\d:]+)?))";
  static const std::regex of_dmesg(R"((<\d+>)?(kern *:[a-z]+ *: )?)" + stamps);
  static const std::regex of_syslog(R"((<\d+>)?(1 )?)" + when +
                                    R"( \S+ kernel(:| - - (-|\[[^\]]*\])) )" + stamps);
  const std::string text(before);
  return std::regex_match(text, of_dmesg) || std::regex_match(text, of_syslog);
}

// Where `part` begins a message of the kernel.
size_t FindMessage(std::string_view line, std::string_view part) {
  const size_t at = line.find(part);
  if (at == std::string_view::npos || !StandsBeforeMessages(line.substr(0, at))) {
    return std::string_view::npos;
  }
  return at;
}

bool IsFatal(std::string_view words) {   // and not "Nonfatal"
  return words.starts_with("Fatal") || words.find(" Fatal") != std::string_view::npos;
}

// Of "... changed from 0x0 (None) to 0x1 (GPU Reset Required)" what is behind the "to"; else empty.
std::string_view LastAction(std::string_view words) {
  const size_t to = words.rfind(" to ");
  return to == std::string_view::npos ? "" : words.substr(to);
}
bool AsksForNothing(std::string_view words) {
  return LastAction(words).find("(None)") != std::string_view::npos;
}
bool AsksForAction(std::string_view words) {
  return LastAction(words).find(')') != std::string_view::npos && !AsksForNothing(words);
}

bool IsUnfit(const XidKind& kind, const XidSeen& seen) {
  switch (kind.meaning) {
    case XidMeaning::kUnfit: return true;
    case XidMeaning::kUnfitIfFatal: return seen.fatal > 0;
    case XidMeaning::kAction: return AsksForAction(seen.words);
    case XidMeaning::kTold:
    case XidMeaning::kProgram: break;
  }
  return false;
}

// "(Xid 79, 2 times, the last one 3 h after the machine started)"
std::string HowOften(int number, const XidSeen& seen) {
  std::string text = "(Xid " + std::to_string(number) + ", " + CountText(seen.count, "time");
  if (seen.last_at.has_value()) {
    text += std::string(", ") + (seen.count > 1 ? "the last one " : "") +
            DurationText(*seen.last_at) + " after the machine started";
  }
  return text + ")";
}

std::string Quoted(const std::string& words) {
  return words.empty() ? "" : ": \"" + Printable(words) + "\"";
}

HealthFinding OfXid(const std::string& log, const std::string& bus, int number,
                    const XidSeen& seen) {
  const std::string often = HowOften(number, seen);
  const XidKind* const kind = FindXid(number);
  if (kind == nullptr) {
    return {kXidCheck, Fitness::kUnknown,
            log + " has an error of GPU " + bus + " that this keel does not know " + often +
                Quoted(seen.words)};
  }
  if (kind->meaning == XidMeaning::kAction && AsksForNothing(seen.words)) {
    return {kXidCheck, Fitness::kFit,
            log + " says that GPU " + bus + " waits for nothing any more " + often};
  }
  std::string what = log + " says that GPU " + bus + " " + kind->what + " " + often;
  if (!IsUnfit(*kind, seen)) {
    return {kXidCheck, Fitness::kFit, what + ", which alone does not make it unfit"};
  }
  if (kind->meaning == XidMeaning::kAction) what += Quoted(seen.words);
  return {kXidCheck, Fitness::kUnfit, what, kind->cure};
}

// Since when the log tells anything; empty: since the machine started.
std::string SinceWhen(const XidReader& reader) {
  if (reader.has_start()) return "";
  if (reader.first_at().has_value()) {
    return "; it begins " + DurationText(*reader.first_at()) + " after the machine started";
  }
  return "; it does not say when the machine started";
}

}  // namespace

std::optional<XidLine> ParseXidLine(std::string_view line) {
  const size_t at = FindMessage(line, kXidBegins);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kXidBegins.size());
  const size_t close = rest.find("): ");
  if (close == std::string_view::npos || close == 0 || close > kBusBytesMost) return std::nullopt;
  std::string_view bus = rest.substr(0, close);
  if (bus.starts_with("PCI:")) bus.remove_prefix(4);
  rest.remove_prefix(close + 3);
  size_t digits = 0;
  while (digits < rest.size() && IsDigit(rest[digits])) ++digits;
  if (digits == 0 || digits > kNumberDigitsMost) return std::nullopt;
  const Result<int64_t> number = ParseInteger(rest.substr(0, digits));
  if (!number.ok()) return std::nullopt;
  rest.remove_prefix(digits);
  if (!rest.empty() && rest[0] != ',' && rest[0] != ' ') return std::nullopt;
  if (rest.starts_with(",")) rest.remove_prefix(1);
  return XidLine{Printable(bus), static_cast<int>(*number),
                 Beginning(Trim(rest), kXidWordsMost)};
}

void XidReader::Add(std::string_view line) {
  const std::optional<RecordHead> head = ReadHead(line);
  const bool is_first = !has_lines_;
  has_lines_ = true;
  const size_t start = FindMessage(line, kStartBegins);
  const bool is_start = (head.has_value() && head->sequence == kFirstSequence) ||
                        (start != std::string_view::npos &&
                         line.size() > start + kStartBegins.size() &&
                         IsDigit(line[start + kStartBegins.size()]));
  if (is_start) {
    seen_.clear();
    left_out_ = 0;
    not_understood_ = 0;
    has_start_ = true;
    first_at_.reset();
  } else if (is_first && head.has_value()) {
    first_at_ = head->at;
  }
  const std::optional<XidLine> xid = ParseXidLine(line);
  if (!xid.has_value()) {
    if (line.find(kXidBegins) != std::string_view::npos) ++not_understood_;
    return;
  }
  const std::pair<std::string, int> key(xid->bus, xid->number);
  if (seen_.size() >= kSeenMost && !seen_.contains(key)) {
    ++left_out_;
    return;
  }
  XidSeen& seen = seen_[key];
  ++seen.count;
  seen.fatal += IsFatal(xid->words) ? 1 : 0;
  seen.words = xid->words;
  seen.last_at = head.has_value() ? std::optional(head->at) : std::nullopt;
}

std::vector<HealthFinding> XidFindings(const XidReader& reader, const std::string& log) {
  std::vector<HealthFinding> findings;
  std::vector<HealthFinding> told;
  uint64_t of_programs = 0;
  std::set<int> program_numbers;
  for (const auto& [key, seen] : reader.seen()) {
    const auto& [bus, number] = key;
    const XidKind* const kind = FindXid(number);
    if (kind != nullptr && kind->meaning == XidMeaning::kProgram) {
      of_programs += seen.count;
      program_numbers.insert(number);
      continue;
    }
    HealthFinding finding = OfXid(log, bus, number, seen);
    (finding.fitness == Fitness::kUnfit ? findings : told).push_back(std::move(finding));
  }
  if (findings.empty()) {
    std::string what = log + " has no error of a GPU (Xid)";
    if (!reader.seen().empty()) what += " that makes it unfit";
    if (of_programs > 0) {
      std::vector<std::string> numbers;
      for (const int number : program_numbers) numbers.push_back(std::to_string(number));
      what += ", and " + std::to_string(of_programs) + " that programs made (" +
              JoinList(numbers, ", ") + "), which say nothing of the machine";
    }
    findings.push_back({kXidCheck, Fitness::kFit, what + SinceWhen(reader)});
  }
  const size_t count = std::min(told.size(), kXidsToldMost);
  findings.insert(findings.end(), told.begin(), told.begin() + static_cast<std::ptrdiff_t>(count));
  if (reader.not_understood() > 0) {
    findings.push_back({kXidCheck, Fitness::kUnknown,
                        log + " speaks of errors of GPUs (Xid) in " +
                            CountText(reader.not_understood(), "line") +
                            " of which it is not known whether the kernel wrote them",
                        "look at them yourself: grep 'NVRM: Xid' finds them"});
  }
  const uint64_t more = told.size() - count + reader.left_out();
  if (more > 0) {
    findings.push_back({kXidCheck, Fitness::kUnknown,
                        log + " has " + CountText(more, "further error") +
                            " of GPUs (Xid), which are not told here"});
  }
  return findings;
}

HealthFinding SilentKernelLog(int error) {
  if (error == ENOENT) {
    return {kXidCheck, Fitness::kUnknown,
            "there is no /dev/kmsg, where the kernel tells errors of GPUs (Xid)",
            "look outside of the container, or name a file that was kept of the kernel's log "
            "(--kernel-log)"};
  }
  const std::string why = "this process cannot read /dev/kmsg, where the kernel tells errors of "
                          "GPUs (Xid): " + std::string(std::strerror(error));
  if (error != EPERM && error != EACCES) return {kXidCheck, Fitness::kUnknown, why};
  return {kXidCheck, Fitness::kUnknown, why,
          "look as root, as a service or the prolog of a scheduler does, or let users read it "
          "(sysctl kernel.dmesg_restrict=0)"};
}

}  // namespace keel
