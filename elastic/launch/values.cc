// One small reader for each form.
#include "elastic/launch/values.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <string_view>

#include "base/nearest.h"
#include "base/text.h"
#include "elastic/process/exit_status.h"
#include "elastic/worker_environment.h"

namespace keel {
namespace {

constexpr int64_t kHostsMax = kWorldSizeMax;   // each has at least one worker
constexpr int64_t kWorkersMax = 1 << 16;

// The text between separators, empty pieces included.
std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> Whole(std::string_view text, int64_t least, int64_t most) {
  const Result<int64_t> number = ParseInteger(Trim(text));
  if (!number.ok() || *number < least || *number > most) return std::nullopt;
  return *number;
}

// Accepts any number of digits: what does not fit counts as the largest number.
std::optional<int64_t> Count(std::string_view text) {
  text = Trim(text);
  const bool is_digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!is_digits) return std::nullopt;
  const Result<int64_t> number = ParseInteger(text);
  return number.ok() ? *number : std::numeric_limits<int64_t>::max();
}

// Why this signal cannot be used as a wish to stop; empty: it can.
std::string WhyNoWish(int signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSTOP: return "no process can handle it";
    case SIGCHLD: return "the launcher gets it whenever a worker ends";
    case SIGPIPE: return "the launcher gets it when a reader of its output closes";
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT: return "it reports a fault in the program itself";
    default: return "";
  }
}

std::optional<int> SignalNumber(const std::string& name) {
  for (int number = 1; number < 32; ++number) {
    if (name.starts_with("SIG") && SignalName(number) == name) return number;
  }
  return std::nullopt;
}

const std::vector<std::string>& SignalNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (int number = 1; number < 32; ++number) {
      const std::string name = SignalName(number);
      if (WhyNoWish(number).empty() && name.starts_with("SIG")) list.push_back(name);
    }
    return list;
  }();
  return names;
}

}  // namespace

Result<HostRange> ParseHostRange(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  const auto least = Count(parts.front());
  const auto most = Count(parts.back());
  if (parts.size() > 2 || !least || !most || *least == 0 || *least > *most) {
    return MustBe(text, "a number of hosts, or MIN:MAX with 0 < MIN <= MAX");
  }
  if (*most > kHostsMax) {
    return Error{Code::kInvalid, Shown(text) + " is more hosts than a job can have: at most " +
                                     std::to_string(kHostsMax) +
                                     ", since each host has at least one worker"};
  }
  return HostRange{static_cast<int>(*least), static_cast<int>(*most)};
}

Result<KeyValues> ParseKeyValues(const std::string& text) {
  KeyValues found;
  if (Trim(text).empty()) return found;
  for (const std::string& piece : Split(text, ',')) {
    const size_t equals = piece.find('=');
    const std::string key(Trim(piece.substr(0, equals)));
    const std::string value(equals == std::string::npos ? "" : Trim(piece.substr(equals + 1)));
    if (key.empty() || value.empty()) return MustBe(text, "KEY=VALUE[,KEY=VALUE...]");
    found.emplace_back(key, value);
  }
  return found;
}

Result<int> ParseWorkerCount(const std::string& text, int cpus, int gpus) {
  if (const auto number = Count(text); number && *number > 0) {
    if (*number <= kWorkersMax) return static_cast<int>(*number);
    return Error{Code::kInvalid, Shown(text) + " is more workers than a host can have: at most " +
                                     std::to_string(kWorkersMax) +
                                     ", since its record in the store lists each of them; use "
                                     "more hosts"};
  }
  if (text == "cpu" || (text == "auto" && gpus == 0)) return std::max(cpus, 1);
  if ((text == "gpu" || text == "auto") && gpus > 0) return gpus;
  if (text == "gpu") return MustBe(text, "auto, cpu or a number here: this host shows no GPU");
  return MustBe(text, "auto, cpu, gpu, or a number of at least 1");
}

Result<Duration> ParseWait(const std::string& name, const std::string& text) {
  const Result<Duration> wait = ParseDuration(text);
  if (!wait.ok()) return wait.error().Doing(name);
  if (*wait > Duration(0) && *wait <= kLongestWait) return *wait;
  return Error{Code::kInvalid, name + "=" + Shown(text) + " must be more than 0, and at most " +
                                   DurationText(kLongestWait)};
}

Result<std::set<int>> ParseLocalRanks(const std::string& text) {
  std::set<int> ranks;
  for (const std::string& piece : Split(text, ',')) {
    const auto rank = Whole(piece, 0, kWorkersMax);
    if (!rank) return MustBe(text, "a list of local ranks: 0,1,2");
    ranks.insert(static_cast<int>(*rank));
  }
  return ranks;
}

Result<HandledSignals> ParseSignals(const std::string& text) {
  HandledSignals signals;
  for (const std::string& piece : Split(text, ',')) {
    const std::string name(Trim(piece));
    const std::optional<int> number = SignalNumber(name);
    if (!number) {
      signals.ignored.push_back(Shown(name) + " is no signal, and is ignored" +
                                DidYouMean(name, SignalNames()));
      continue;
    }
    if (const std::string why = WhyNoWish(*number); !why.empty()) {
      return Error{Code::kInvalid, Shown(name) + " is not a signal that can be handled: " + why};
    }
    std::vector<int>& numbers = signals.numbers;
    if (std::count(numbers.begin(), numbers.end(), *number) == 0) numbers.push_back(*number);
  }
  return signals;
}

std::vector<std::string> ParseFilters(const std::string& text) {
  std::vector<std::string> filters = {""};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      filters.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      filters.back() += ',';
      ++i;
    } else {
      filters.emplace_back();
    }
  }
  // An empty filter would take every line, which nobody means by a stray comma.
  std::erase(filters, "");
  return filters;
}

}  // namespace keel
