// OutputPump: takes what workers write, through pipes, and adds it to their log files.
// Promises   a file that takes nothing (its disk is full) is reported, and costs only what that
//            file misses: the console still gets the output, from memory if need be. A file that
//            takes bytes again gets those that come from then on. A worker waits for the disk of
//            its file, and for nothing else.
// Does not   show anything (elastic/workers/log_tail.h); wait for a console, or in Open() for a
//            file system that does not answer.
// Threads    methods from any. A thread of its own reads and writes.
// Errors     of Open(): kForeign: the system gives no pipe. Failures of files are in `lost`.
// Lifetime   keeps `files` and `lost` by reference; `files` also in a call that gets no answer.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "elastic/report/lost_output.h"
#include "elastic/workers/output_spool.h"

namespace keel {

class OutputPump {
 public:
  static Result<std::unique_ptr<OutputPump>> Start(Files& files, LostOutput& lost);
  // Takes what is in the pipes by now.
  ~OutputPump();

  struct Source {
    int number = -1;   // for Finish()
    Fd write;          // the worker's end; closed here once the worker has it
  };
  // `spool` is read by whoever shows the output; null: it is not shown.
  Result<Source> Open(std::string path, std::shared_ptr<OutputSpool> spool);
  // The streams' worker has ended: when this returns, what it wrote is in its files, and their
  // spools have ended. False if `deadline` came first. Descendants may write on, to the files
  // alone.
  bool Finish(const std::vector<int>& numbers, TimePoint deadline);
  // Finishes all streams. Nothing can be opened afterwards.
  bool Stop(TimePoint deadline);

 private:
  struct Stream {
    std::string path;
    Fd read;
    std::shared_ptr<OutputSpool> spool;   // null: it is not shown, or not any more
    std::shared_ptr<File> file;           // null: it could not be opened yet
    bool finishing = false;               // guarded by mutex_, as the next one
    bool finished = false;
    bool closed = false;                  // no process can write any more; the thread's own
  };

  OutputPump(Files& files, LostOutput& lost, PipeEnds wake);
  void Run();
  void Await(const std::vector<std::shared_ptr<Stream>>& streams);
  size_t TakeSome(Stream& stream);
  void Drain(Stream& stream);
  void Take(Stream& stream, std::string_view bytes);
  size_t AddToFile(Stream& stream, std::string_view bytes, std::string& why);
  void FinishThose(const std::vector<std::shared_ptr<Stream>>& streams);
  std::vector<std::shared_ptr<Stream>> Current();
  void Wake();
  bool AwaitChange(std::unique_lock<std::mutex>& lock, TimePoint deadline);

  Files& files_;
  LostOutput& lost_;
  const PipeEnds wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::shared_ptr<Stream>> streams_;   // guarded by mutex_, as the rest
  int next_number_ = 0;
  bool stopping_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace keel
