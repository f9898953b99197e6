// One multi handle and its thread; whoever asks waits until that thread has ended the transfer.
#include "store/s3/transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "store/s3/own_thread.h"

namespace keel {
namespace {

constexpr long kBufferBytes = 512L << 10;
constexpr int kPollMs = 1000;

CURLM* NewMulti() {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  KEEL_CHECK(begun == CURLE_OK, "libcurl cannot start: " << curl_easy_strerror(begun));
  CURLM* const multi = curl_multi_init();
  KEEL_CHECK(multi != nullptr, "libcurl has no memory to start");
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 32L);
  return multi;
}

long WholeMs(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<long>(std::max<int64_t>(ms, 1));
}

// "h:9000" of "http://h:9000/b?c".
std::string HostOf(const std::string& url) {
  const size_t first = std::min(url.find("://"), url.size() - 3) + 3;
  return url.substr(first, std::min(url.find_first_of("/?", first), url.size()) - first);
}

HttpEnd EndOf(CURLcode code, bool was_sent) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return was_sent ? HttpEnd::kTimedOut : HttpEnd::kNotSent;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
      return HttpEnd::kNotSent;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
      return HttpEnd::kHopeless;
    // Among others CURLE_UNSUPPORTED_PROTOCOL, which is what answers without a head are to libcurl,
    // and CURLE_OUT_OF_MEMORY, which is a line without an end.
    default:
      return HttpEnd::kBroken;
  }
}

}  // namespace

struct HttpTransport::Transfer {
  const TransportRequest& request;
  HttpOutcome outcome = {};
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  size_t sent = 0;
  size_t head_bytes = 0;
  bool has_enough = false;
  std::string overflow = {};       // what was too large
  bool is_over = false;            // guarded by the transport's mutex_
  char words[CURL_ERROR_SIZE] = {};

  static size_t Read(char* into, size_t size, size_t count, void* self);
  static int Seek(void* self, curl_off_t offset, int origin);
  static size_t Head(char* line, size_t size, size_t count, void* self);
  static size_t Body(char* piece, size_t size, size_t count, void* self);
  bool IsFine() const { return outcome.answer.status / 100 == 2; }
};

size_t HttpTransport::Transfer::Read(char* into, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::span<const std::byte> left = transfer.request.body.subspan(transfer.sent);
  const size_t bytes = std::min(size * count, left.size());
  if (bytes > 0) std::memcpy(into, left.data(), bytes);
  transfer.sent += bytes;
  return bytes;
}

// libcurl goes back when a kept connection turns out to be closed, and it tries a new one.
int HttpTransport::Transfer::Seek(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  transfer.sent = std::min(static_cast<size_t>(offset), transfer.request.body.size());
  return CURL_SEEKFUNC_OK;
}

size_t HttpTransport::Transfer::Head(char* line, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  HttpAnswer& answer = transfer.outcome.answer;
  const std::string_view text(line, size * count);
  transfer.head_bytes += text.size();
  if (transfer.head_bytes > kHttpHeadBytesMax) {
    transfer.overflow = "the headers of its answer";
    return 0;
  }
  if (text.starts_with("HTTP/")) {   // another one follows "100 Continue"
    answer = HttpAnswer();
    const Result<int64_t> status = ParseInteger(text.substr(std::min(text.find(' ') + 1,
                                                                     text.size())).substr(0, 3));
    answer.status = status.ok() ? static_cast<int>(*status) : 0;
    return text.size();
  }
  const size_t colon = text.find(':');
  if (colon == text.npos) return text.size();
  std::string name(text.substr(0, colon));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  answer.headers[name] = Trim(text.substr(colon + 1));
  return text.size();
}

size_t HttpTransport::Transfer::Body(char* piece, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  HttpAnswer& answer = transfer.outcome.answer;
  const size_t bytes = size * count;
  if (transfer.request.take != nullptr && transfer.IsFine()) {
    const std::span<const char> chars(piece, bytes);
    const bool goes_on = transfer.request.take(answer, std::as_bytes(chars));
    answer.bytes += bytes;
    transfer.has_enough = !goes_on;
    return goes_on ? bytes : 0;
  }
  if (answer.body.size() + bytes > kHttpBodyBytesMax) {
    transfer.overflow = "the body of its answer";
    return 0;
  }
  answer.body.append(piece, bytes);
  answer.bytes += bytes;
  return bytes;
}

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpTransport::HttpTransport(std::string ca_file)
    : ca_file_(std::move(ca_file)), multi_(NewMulti()), thread_(OwnThread([this] { Run(); })) {}

HttpTransport::~HttpTransport() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  Wake();
  thread_.join();
  curl_multi_cleanup(multi_);
}

void HttpTransport::Wake() { curl_multi_wakeup(multi_); }

HttpOutcome HttpTransport::Ask(const TransportRequest& request) {
  Transfer transfer{request};
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&transfer);
  }
  Wake();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return transfer.is_over; });
  return std::move(transfer.outcome);
}

void HttpTransport::Run() {
  for (;;) {
    std::vector<Transfer*> fresh;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) break;
      fresh.swap(waiting_);
    }
    for (Transfer* transfer : fresh) Begin(*transfer);
    EndCancelled();
    int count = 0;
    curl_multi_perform(multi_, &count);
    TakeFinished();
    curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
  const std::vector<Transfer*> left = running_;
  for (Transfer* transfer : left) End(*transfer, {HttpEnd::kCancelled, {}, "its client ended"});
}

void HttpTransport::Begin(Transfer& transfer) {
  transfer.easy = curl_easy_init();
  if (transfer.easy == nullptr) {
    running_.push_back(&transfer);
    End(transfer, {HttpEnd::kHopeless, {}, "libcurl has no memory"});
    return;
  }
  Set(transfer);
  running_.push_back(&transfer);
  curl_multi_add_handle(multi_, transfer.easy);
}

void HttpTransport::Set(Transfer& transfer) {
  CURL* const easy = transfer.easy;
  const TransportRequest& request = transfer.request;
  // A header without a value is one that libcurl shall not add by itself.
  transfer.headers = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : request.headers) {
    transfer.headers = curl_slist_append(transfer.headers, (name + ": " + value).c_str());
  }
  const auto set = [easy](CURLoption option, auto value) {
    curl_easy_setopt(easy, option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HTTPHEADER, transfer.headers);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Else the end of a transfer waits for a resolver that is silent, and all others with it.
  set(CURLOPT_QUICK_EXIT, 1L);
#endif
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_ERRORBUFFER, transfer.words);
  set(CURLOPT_PRIVATE, static_cast<void*>(&transfer));
  set(CURLOPT_TIMEOUT_MS, WholeMs(request.limit));
  set(CURLOPT_CONNECTTIMEOUT_MS, WholeMs(std::min(request.connect_limit, request.limit)));
  if (request.slow_bytes_s != 0) {
    set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(request.slow_bytes_s));
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(kSlowLimit.count()));
  }
#if LIBCURL_VERSION_NUM >= 0x075500
  set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());
  if (request.on_new_connection) set(CURLOPT_FRESH_CONNECT, 1L);
  if (request.avoids_proxies) set(CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::Head);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::Body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::Read);
    set(CURLOPT_READDATA, static_cast<void*>(&transfer));
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::Seek);
    set(CURLOPT_SEEKDATA, static_cast<void*>(&transfer));
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void HttpTransport::TakeFinished() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* held = nullptr;
    long request_bytes = 0;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &held);
    curl_easy_getinfo(message->easy_handle, CURLINFO_REQUEST_SIZE, &request_bytes);
    auto& transfer = *static_cast<Transfer*>(held);
    const CURLcode code = message->data.result;
    HttpOutcome outcome{HttpEnd::kAnswered, std::move(transfer.outcome.answer), ""};
    const bool is_cut = code == CURLE_WRITE_ERROR && transfer.has_enough;
    if (code != CURLE_OK && !is_cut) {
      outcome.end = EndOf(code, request_bytes > 0);
      const std::string host = HostOf(transfer.request.url);
      if (!transfer.overflow.empty()) {
        outcome.words = host + ": " + transfer.overflow + " is too long";
      } else if (code == CURLE_COULDNT_CONNECT) {
        outcome.words = host + " cannot be reached (" + Printable(transfer.words) + ")";
      } else {
        const char* const said = transfer.words[0] != 0 ? transfer.words : curl_easy_strerror(code);
        outcome.words = host + ": " + Printable(said);
      }
    }
    End(transfer, std::move(outcome));
  }
}

void HttpTransport::EndCancelled() {
  const std::vector<Transfer*> all = running_;
  for (Transfer* transfer : all) {
    if (transfer->request.cancel.cancelled()) {
      End(*transfer, {HttpEnd::kCancelled, {}, "it was cancelled"});
    }
  }
}

void HttpTransport::End(Transfer& transfer, HttpOutcome outcome) {
  if (transfer.easy != nullptr) {
    curl_multi_remove_handle(multi_, transfer.easy);
    curl_easy_cleanup(transfer.easy);
  }
  curl_slist_free_all(transfer.headers);
  std::erase(running_, &transfer);
  // Notified under the lock: the waiter's transfer is gone as soon as it goes on.
  const std::lock_guard lock(mutex_);
  transfer.outcome = std::move(outcome);
  transfer.is_over = true;
  ended_.notify_all();
}

}  // namespace keel
