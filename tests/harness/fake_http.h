// FakeHttp: a server of HTTP on loopback that answers as a test tells it to, well or badly.
// Promises   each request is noted, with its headers, before it is answered. An answer that is
//            changed is given to those who still wait for one.
// Does not   know HTTP beyond a request's first bytes; take bodies.
// Threads    any; it has one of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace keel {

class FakeHttp {
 public:
  FakeHttp();
  ~FakeHttp();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

  // To requests that begin like this ("GET /latest"); the longest one counts. Others get 404.
  void Answer(const std::string& request, int status, const std::string& body,
              const std::string& headers = "");
  // Bytes as they are, then the connection is closed.
  void AnswerRaw(const std::string& request, const std::string& bytes);
  // Never, or once another answer is set; `begin` at once.
  void Hang(const std::string& request, const std::string& begin = "");
  // Nobody listens any more, and connections are closed.
  void Close();

  // Waits until there were so many such requests; false if a limit against hanging passes.
  bool AwaitAsked(const std::string& request, int count);
  // All so far, each to its empty line.
  std::vector<std::string> requests() const;

 private:
  struct Waiting {
    Fd connection;
    std::string request;
  };
  void Run();
  void Serve(Fd connection);
  void Set(const std::string& request, std::optional<std::string> bytes, const std::string& begin);
  // Nothing: it hangs.
  std::optional<std::string> BytesFor(const std::string& request, std::string* begin) const;
  void Wake() const;

  Fd listener_;
  Fd wake_;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  bool closing_ = false;   // all below: guarded by mutex_
  // What is sent at once, and the whole, if any, by the beginning of the request.
  std::map<std::string, std::pair<std::string, std::optional<std::string>>> answers_;
  std::vector<std::string> requests_;
  std::vector<Waiting> waiting_;
  std::thread thread_;
};

}  // namespace keel
