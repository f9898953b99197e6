// Wipe, write what goes above, draw again: in one write, so that nothing gets in between.
#include "elastic/status_line.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace keel {
namespace {

constexpr std::string_view kWipe = "\r\x1b[K";

bool IsAway(const StreamPlan& plan) {
  return plan.to != StreamPlan::To::kConsole && !plan.shown;
}

}  // namespace

std::string StatusText(const MemberRecord& host, const std::optional<EpochRecord>& epoch) {
  if (!epoch) return "waiting for the first epoch";
  int64_t step = -1;
  for (const SeatRecord& seat : host.seats) step = std::max(step, seat.position.step);
  std::string text = "epoch " + std::to_string(epoch->number) + ": " +
                     std::to_string(epoch->workers.size()) + " workers on " +
                     std::to_string(epoch->hosts.size()) + " hosts";
  if (step >= 0) text += ", step " + std::to_string(step);
  if (host.deaths > 0) {
    text += ", " + std::to_string(host.deaths) + (host.deaths == 1 ? " failure" : " failures") +
            " here";
  }
  return text;
}

bool WantsStatusLine(const LaunchConfig& config) {
  if (config.log_format != LogFormat::kText || isatty(STDERR_FILENO) == 0) return false;
  for (int index = 0; index < config.workers_per_host; ++index) {
    const SeatLogs logs = PlanSeatLogs(config.logs, "logs", 0, index);
    if (!IsAway(logs.out) || !IsAway(logs.err)) return false;
  }
  return true;
}

StatusLine::StatusLine() {
  LogToCallback([this](std::string_view line) { Write(line); });
}

StatusLine::~StatusLine() {
  LogToStderr();
  const std::lock_guard lock(mutex_);
  text_.clear();
  (void)!write(STDERR_FILENO, kWipe.data(), kWipe.size());
}

void StatusLine::Show(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  Write("");
}

void StatusLine::Write(std::string_view above) {
  const std::lock_guard lock(mutex_);
  std::string all(kWipe);
  all += above;
  all += text_;
  (void)!write(STDERR_FILENO, all.data(), all.size());
}

}  // namespace keel
