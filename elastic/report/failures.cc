// Lays out the two texts; their JSON has the same facts.
#include "elastic/report/failures.h"

#include <algorithm>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "elastic/report/blame_words.h"

namespace keel {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr size_t kWidthMax = 60;
constexpr size_t kEventsShown = 50;

int64_t SecondsOf(const WorkerFailure& failure) {
  if (failure.error && failure.error->time_s) return *failure.error->time_s;
  return failure.seen_nanos / kNanosPerSecond;
}

// The lines of the text, without characters that would confuse a terminal, indented.
std::string Indented(std::string_view text, size_t blanks) {
  std::string indented;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    indented += Printable(text.substr(0, end)) + "\n" + std::string(blanks, ' ');
    text.remove_prefix(end + 1);
  }
  return indented + Printable(text);
}

std::string WhyText(const WorkerFailure& failure) {
  if (failure.error && !failure.error->traceback.empty()) return failure.error->traceback;
  if (failure.error && !failure.error->message.empty()) return failure.error->message;
  if (failure.status.kind == ExitStatus::Kind::kSignalled) {
    return "Signal " + std::to_string(failure.status.number) + " (" +
           SignalName(failure.status.number) + ") received by PID " + std::to_string(failure.pid);
  }
  return "none: the program left no error file (in Python, torch.distributed.elastic's @record "
         "writes one)";
}

// As torchrun writes it: by the clock on the wall here, with an underscore.
std::string LocalTimeText(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32] = "";
  if (localtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  (void)std::strftime(text, sizeof text, "%Y-%m-%d_%H:%M:%S", &parts);
  return text;
}

std::string FailureText(size_t index, const WorkerFailure& failure) {
  const std::string file = failure.error_file.empty() ? "<N/A>" : Printable(failure.error_file);
  const bool is_signal = failure.status.kind == ExitStatus::Kind::kSignalled;
  const std::string signal = is_signal ? " (" + SignalName(failure.status.number) + ")" : "";
  return "[" + std::to_string(index) + "]:\n" +
         "  time      : " + LocalTimeText(SecondsOf(failure)) + "\n" +
         "  host      : " + Printable(failure.host) + "\n" +
         "  rank      : " + std::to_string(failure.rank) + " (local_rank: " +
         std::to_string(failure.local_rank) + ")\n" +
         "  exitcode  : " + std::to_string(PythonExitCode(failure.status)) + " (pid: " +
         std::to_string(failure.pid) + ")" + signal + "\n" +
         "  error_file: " + file + "\n" +
         "  traceback : " + Indented(BriefError(WhyText(failure), failure.error_file), 2) + "\n";
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

std::string EventText(const JobEvent& event) {
  std::string text = "  " + UtcText(event.wall_nanos) + " epoch " + std::to_string(event.epoch) +
                     ": " + Printable(event.who) + (event.who.empty() ? "" : " ") +
                     Printable(event.why);
  if (!event.answer.empty()) text += "\n    -> " + Printable(event.answer);
  return text + "\n";
}

}  // namespace

const WorkerFailure& RootCause(const std::vector<WorkerFailure>& failures) {
  KEEL_CHECK(!failures.empty(), "a report about no failure");
  return *std::min_element(failures.begin(), failures.end(),
                           [](const WorkerFailure& a, const WorkerFailure& b) {
                             return std::pair(SecondsOf(a), a.seen_nanos) <
                                    std::pair(SecondsOf(b), b.seen_nanos);
                           });
}

std::string FailureReportText(const std::string& program,
                              const std::vector<WorkerFailure>& failures) {
  const WorkerFailure& root = RootCause(failures);
  const std::string title = Printable(program) + " FAILED\n";
  std::string root_text, others;
  for (size_t i = 0; i < failures.size(); ++i) {
    (&failures[i] == &root ? root_text : others) += FailureText(i, failures[i]);
  }
  if (others.empty()) others = "  <NO_OTHER_FAILURES>\n";
  const size_t width = std::min(LongestLine(title + root_text + others), kWidthMax);
  const std::string border = std::string(width, '=') + "\n";
  const std::string line = std::string(width, '-') + "\n";
  return border + title + line + "Failures:\n" + others + line +
         "Root Cause (first observed failure):\n" + root_text + border;
}

Json FailureReportJson(const std::string& program, const std::vector<WorkerFailure>& failures) {
  Json list = Json::array();
  size_t root_index = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    const WorkerFailure& failure = failures[i];
    if (&failure == &RootCause(failures)) root_index = i;
    list.push_back({{"time", UtcText(SecondsOf(failure) * kNanosPerSecond)},
                    {"host", failure.host},
                    {"rank", failure.rank},
                    {"local_rank", failure.local_rank},
                    {"exitcode", PythonExitCode(failure.status)},
                    {"pid", failure.pid},
                    {"ended", failure.status.Text()},
                    {"error_file", failure.error_file},
                    {"traceback", WhyText(failure)}});
  }
  return {{"program", program}, {"root_cause", root_index}, {"failures", std::move(list)}};
}

std::string JobSummaryText(const JobSummary& summary) {
  const Duration took(std::max<int64_t>(summary.ended_nanos - summary.started_nanos, 0));
  std::string text = "job " + Printable(summary.job) + ": " + Printable(summary.outcome) +
                     " (exit code " +
                     std::to_string(summary.exit_code) + ") after " + DurationText(took) + ", " +
                     CountText(static_cast<size_t>(summary.epochs), "epoch") + ", " +
                     CountText(summary.events.size(), "event") + "\n";
  // If there are too many, only the first and the last ones are shown.
  const size_t count = summary.events.size();
  const bool is_long = count > kEventsShown;
  for (size_t i = 0; i < count; ++i) {
    if (is_long && i == kEventsShown / 2) {
      text += "  ... " + std::to_string(count - kEventsShown) + " more, which the log has ...\n";
      i = count - kEventsShown / 2;
    }
    text += EventText(summary.events[i]);
  }
  if (summary.time.knows_steps) text += "  " + WorkerTimeText(summary.time) + "\n";
  text += BlameText(summary.blame, summary.health);
  text += LostOutputText(summary.lost_output);
  if (!summary.logs.empty()) text += "  logs: " + Printable(summary.logs) + "\n";
  return text;
}

std::string LostOutputText(const std::vector<LostBytes>& lost_output) {
  std::string text;
  for (const LostBytes& lost : lost_output) {
    text += "  missing from " + Printable(lost.where) + ": " + std::to_string(lost.bytes) +
            " bytes of output (" + Printable(lost.why) + ")\n";
  }
  return text;
}

std::string GoodputLine(const JobSummary& summary) {
  if (!summary.time.knows_steps) return "";
  return "job " + Printable(summary.job) + ": " + WorkerTimeText(summary.time) + "\n";
}

Json JobSummaryJson(const JobSummary& summary) {
  Json events = Json::array();
  for (const JobEvent& event : summary.events) {
    events.push_back({{"time", UtcText(event.wall_nanos)}, {"epoch", event.epoch},
                      {"what", event.what}, {"who", event.who}, {"why", event.why},
                      {"answer", event.answer}});
  }
  Json lost_output = Json::array();
  for (const LostBytes& lost : summary.lost_output) {
    lost_output.push_back({{"from", lost.where}, {"bytes", lost.bytes}, {"reason", lost.why}});
  }
  return {{"job", summary.job},
          {"exit_code", summary.exit_code},
          {"outcome", summary.outcome},
          {"started", UtcText(summary.started_nanos)},
          {"ended", UtcText(summary.ended_nanos)},
          {"epochs", summary.epochs},
          {"logs", summary.logs},
          {"output_missing", std::move(lost_output)},
          {"time_here", WorkerTimeJson(summary.time)},
          {"blame_here", BlameJson(summary.blame)},
          {"health_here", summary.health},
          {"events", std::move(events)}};
}

}  // namespace keel
