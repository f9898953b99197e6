// StatusLine: one line at the bottom of a terminal that says how the job is; the log runs above it.
// Promises   log lines stay whole: the line is wiped before each of them and drawn again below. It
//            is gone when this object is.
// Does not   share the terminal with anybody else: not for jobs whose workers write there.
// Threads    Show() from one; log lines come from any.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "elastic/launch_config.h"
#include "elastic/records.h"

namespace keel {

// "epoch 3: 8 workers on 2 hosts, step 120, 1 failure here"
std::string StatusText(const MemberRecord& host, const std::optional<EpochRecord>& epoch);

// Whether stderr is a terminal, for people, and ours alone.
bool WantsStatusLine(const LaunchConfig& config);

class StatusLine {
 public:
  // Takes the log over.
  StatusLine();
  ~StatusLine();

  void Show(const std::string& text);

 private:
  void Write(std::string_view above);

  std::mutex mutex_;
  std::string text_;   // guarded by mutex_
};

}  // namespace keel
