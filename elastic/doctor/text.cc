// Three columns: how bad it is, what was checked, what was found.
#include "elastic/doctor/text.h"

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"

namespace keel {
namespace {

constexpr size_t kSeverityWidth = 5;
constexpr size_t kCheckWidth = 15;

const char* WordOf(Severity severity) {
  switch (severity) {
    case Severity::kOk: return "OK";
    case Severity::kSkipped: return "SKIP";
    case Severity::kWarning: return "WARN";
    case Severity::kFailure: return "FAIL";
  }
  return "";
}

const char* JsonWordOf(Severity severity) {
  switch (severity) {
    case Severity::kOk: return "ok";
    case Severity::kSkipped: return "skipped";
    case Severity::kWarning: return "warning";
    case Severity::kFailure: return "failure";
  }
  return "";
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

}  // namespace

size_t CountOf(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& one) { return one.severity == severity; }));
}

std::string DoctorText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings) {
    text += Padded(WordOf(one.severity), kSeverityWidth) + Padded(one.check, kCheckWidth) +
            (one.host.empty() ? "" : Printable(one.host) + ": ") + Printable(one.what) + "\n";
    if (one.cure.empty()) continue;
    text += std::string(kSeverityWidth + kCheckWidth, ' ') + "cure: " + Printable(one.cure) + "\n";
  }
  const size_t failures = CountOf(findings, Severity::kFailure);
  const size_t warnings = CountOf(findings, Severity::kWarning);
  if (failures + warnings == 0) return text + "The doctor found nothing wrong.\n";
  return text + "The doctor found " + CountText(failures, "failure") + " and " +
         CountText(warnings, "warning") +
         (failures > 0 ? ": the job would not work.\n" : ": the job would run.\n");
}

Json DoctorJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& one : findings) {
    list.push_back({{"check", one.check},
                    {"severity", JsonWordOf(one.severity)},
                    {"host", one.host},
                    {"what", one.what},
                    {"cure", one.cure}});
  }
  return {{"failures", CountOf(findings, Severity::kFailure)},
          {"warnings", CountOf(findings, Severity::kWarning)},
          {"findings", std::move(list)}};
}

void LogFindings(const std::vector<Finding>& findings) {
  for (const Finding& one : findings) {
    LogWarn("doctor", {{"check", one.check}, {"found", one.what}, {"cure", one.cure}});
  }
}

}  // namespace keel
