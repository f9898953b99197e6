// HttpTransport: HTTP/1.1 over libcurl, with connections that are kept.
// Promises   each request ends by its limit, and at once when it is cancelled. Head and body of an
//            answer are bounded. A certificate must be one that the system (or AWS_CA_BUNDLE)
//            trusts. Proxies are those of the environment, by libcurl's rules.
// Does not   try again, follow redirects, decompress, or say "Expect: 100-continue".
// Threads    any; one of its own does all I/O.
// Errors     an outcome's words are a clause that names the host and no secret.
// Lifetime   no request may be under way when it is destroyed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "store/cancel.h"
#include "store/s3/sign.h"

namespace keel {

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;   // names in lower case
  std::string body;
  uint64_t bytes = 0;    // of the body so far, wherever they went

  // Empty where there is none.
  std::string Header(const std::string& name) const;
};

// Takes a piece of the body of an answer with a status of 2xx, on the transport's thread;
// `answer.bytes` came before it. False: no more is wanted, which counts as a whole answer.
using HttpTake = std::function<bool(const HttpAnswer& answer, std::span<const std::byte> piece)>;

struct TransportRequest {
  std::string method;
  std::string url;       // encoded
  HttpPairs headers = {};
  std::span<const std::byte> body = {};
  HttpTake take = nullptr;                // null: the body is kept in the answer
  Duration limit = std::chrono::seconds(20);
  Duration connect_limit = std::chrono::seconds(10);
  uint64_t slow_bytes_s = 0;              // slower than this for kSlowLimit is broken; 0: never
  bool avoids_proxies = false;
  // On a kept connection that the server closes without a word libcurl sends once more by itself.
  bool on_new_connection = false;
  CancelToken cancel = CancelToken::Never();
};

inline constexpr std::chrono::seconds kSlowLimit{20};
inline constexpr size_t kHttpHeadBytesMax = size_t{64} << 10;
inline constexpr size_t kHttpBodyBytesMax = size_t{16} << 20;

enum class HttpEnd {
  kAnswered,
  kNotSent,     // the host cannot be reached: it has seen nothing of the request
  kBroken,      // the connection broke, or what came is no HTTP: it may have had its effect
  kTimedOut,    // the same, by its limit
  kCancelled,
  kHopeless     // another try cannot help: a certificate, a setting
};

struct HttpOutcome {
  HttpEnd end = HttpEnd::kBroken;
  HttpAnswer answer = {};
  std::string words = {};   // why it was not answered
};

class HttpTransport {
 public:
  explicit HttpTransport(std::string ca_file);
  ~HttpTransport();
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  HttpOutcome Ask(const TransportRequest& request);
  // Has requests whose tokens were raised end now.
  void Wake();

 private:
  struct Transfer;
  void Run();
  void Begin(Transfer& transfer);
  void Set(Transfer& transfer);
  void End(Transfer& transfer, HttpOutcome outcome);
  void TakeFinished();
  void EndCancelled();

  const std::string ca_file_;
  void* const multi_;                 // CURLM
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Transfer*> waiting_;    // guarded by mutex_
  bool closing_ = false;              // guarded by mutex_
  std::vector<Transfer*> running_;    // of the thread
  std::thread thread_;
};

}  // namespace keel
