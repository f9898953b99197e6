// LogFile: the lines of a log file, which may be huge, and may grow, be cut or be replaced.
// Promises   holds one line of at most 16 KiB and one piece of the file: of a longer line it gives
//            the beginning (if carriage returns overwrite it: of what is seen last), and tells how
//            much is missing. A line without its line feed is given
//            only when it is asked for.
// Does not   find lines that were written and cut away between two calls.
// Threads    one at a time. Errors: those of base/files.h; the file may be read again.
// Lifetime   keeps `files` by reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace keel {

inline constexpr size_t kLogLineBytes = 16384;

struct LogFileLine {
  std::string text;
  uint64_t cut_bytes = 0;   // of the line, that `text` lacks
  bool is_torn = false;     // it has no line feed
};

class LogFile {
 public:
  LogFile(Files& files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // The next line; none: the file has no more at present. `with_torn`: the unfinished line at its
  // end is given, too.
  Result<std::optional<LogFileLine>> Next(bool with_torn);
  // To be called where Next() gave none: if another file has the name now, or it was cut, its first
  // line is the next one. An unfinished line is kept apart from it.
  Status Renew();

 private:
  Result<bool> Fill();   // false: there is no more
  std::optional<LogFileLine> Take();
  LogFileLine TakeRest();

  Files& files_;
  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
  std::string held_;         // read and not given
  size_t searched_ = 0;      // of held_, without a line feed in it
  uint64_t skipped_ = 0;     // of a line that is too long, behind what is held of it
  bool is_cut_off_ = false;  // what is held came from a file that is gone: it is a line
};

}  // namespace keel
