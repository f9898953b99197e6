// Beast's asynchronous operations, each run to its end or to its deadline by the calling thread.
#include "store/etcd/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>
#include <boost/beast/http/write.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "store/host_port.h"
#include "store/resolve.h"

namespace keel {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using asio::ip::tcp;
using Socket = tcp::socket;
using TlsStream = ssl::stream<Socket&>;

// A waiter looks at its cancel token this often.
constexpr Duration kLook = std::chrono::milliseconds(5);
constexpr int kKeepAliveSeconds = 10;

bool IsOfTls(const error_code& failure) {
  return failure.category() == asio::error::get_ssl_category();
}
// Whether an alert of TLS, by which a member says why it breaks off, is about our certificate, its
// absence among others. Another one may be the member's own trouble, such as 80, an internal error.
bool IsOfCertificate(int alert) {
  constexpr std::array kAlerts = {41, 42, 43, 44, 45, 46, 48, 49, 116};
  return std::find(kAlerts.begin(), kAlerts.end(), alert) != kAlerts.end();
}
bool IsOfHttp(const error_code& failure) {
  return failure.category() == http::make_error_code(http::error::bad_method).category();
}

// A context that trusts and shows what `tls` says.
Result<std::unique_ptr<ssl::context>> TlsContext(const EtcdTls& tls) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  const auto refused = [](const std::string& what, const std::string& file, const error_code& why) {
    // OpenSSL's own words do not tell that a file is missing.
    const bool can_read = ::access(file.c_str(), R_OK) == 0;
    return Error{Code::kInvalid, "the " + what + " file '" + file + "' cannot be used (" +
                                     (can_read ? why.message() : strerror(errno)) +
                                     "); check its path and that it is PEM"};
  };
  error_code failure;
  context->set_verify_mode(ssl::verify_peer, failure);
  if (tls.ca_file.empty()) {
    context->set_default_verify_paths(failure);
  } else if (context->load_verify_file(tls.ca_file, failure)) {
    return refused("CA", tls.ca_file, failure);
  }
  if (tls.cert_file.empty()) return context;
  if (context->use_certificate_chain_file(tls.cert_file, failure)) {
    return refused("certificate", tls.cert_file, failure);
  }
  if (context->use_private_key_file(tls.key_file, ssl::context::pem, failure)) {
    return refused("key", tls.key_file, failure);
  }
  return context;
}

}  // namespace

class EtcdConnection::Exchange {
 public:
  Exchange(const EtcdMember& member, std::unique_ptr<ssl::context> context,
           const CancelToken& cancel)
      : where_(EtcdMemberText(member)),
        host_(member.host),
        context_(std::move(context)),
        cancel_(cancel) {}

  ~Exchange() {
    Close();
    loop_.restart();
    loop_.run();  // what was under way ends now, before what it refers to
  }

  Status Connect(const std::string& number, uint16_t port, TimePoint end) {
    error_code failure;
    const auto address = asio::ip::make_address(number, failure);
    failure = Run(end, [&](auto done) {
      socket_.async_connect(tcp::endpoint(address, port), std::move(done));
    });
    if (failure == asio::error::connection_refused) {
      return Error{Code::kPeerLost, where_ + " refused the connection"};
    }
    if (failure) return Failed(failure);
    socket_.set_option(tcp::no_delay(true), failure);
    NoticeDeadPeers();
    return context_ == nullptr ? Ok() : Greet(end);
  }

  Result<int> Begin(const EtcdRequest& request, TimePoint end) {
    const error_code failure = Write(request, end);
    parser_.emplace();
    // Not boost::none, which Boost 1.74 takes for 0.
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    // A member that hangs up may have said why before.
    if (failure && !(IsOpen() && context_ != nullptr)) return Failed(failure);
    while (!parser_->is_header_done()) {
      KEEL_TRY_ASSIGN(const bool more, AwaitMore(end));
      if (!more) return Silent();
    }
    return static_cast<int>(parser_->get().result_int());
  }

  Result<std::string> Rest() {
    while (!parser_->is_done()) {
      KEEL_TRY_ASSIGN(const bool more, AwaitMore(RealClock().Monotonic() + kEtcdAttemptLimit));
      if (!more) {
        Close();
        return Error{Code::kPeerLost, where_ + " stopped in the middle of its answer"};
      }
    }
    if (!parser_->keep_alive()) Close();
    return std::move(parser_->get().body());
  }

  Result<std::optional<std::string>> Line(TimePoint until, const CancelToken& cancel) {
    for (;;) {
      std::string& body = parser_->get().body();
      lines_ += body;
      body.clear();
      if (const size_t size = lines_.find('\n'); size != std::string::npos) {
        std::string line = lines_.substr(0, size);
        lines_.erase(0, size + 1);
        return std::optional(std::move(line));
      }
      if (parser_->is_done()) {
        Close();
        return Error{Code::kPeerLost, where_ + " ended its answer"};
      }
      const TimePoint now = RealClock().Monotonic();
      if (cancel.cancelled()) return std::optional<std::string>();
      const TimePoint look = cancel.can_be_cancelled() ? std::min(until, now + kLook) : until;
      KEEL_TRY_ASSIGN(const bool more, AwaitMore(look));
      if (!more && look >= until) return std::optional<std::string>();
    }
  }

  bool IsOpen() const { return socket_.is_open(); }
  void Heed(const CancelToken& cancel) { cancel_ = cancel; }

 private:
  // A watch may be silent for hours, and firewalls between forget such connections.
  void NoticeDeadPeers() {
    error_code ignored;
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    const auto set = [&](int option, int value) {
      setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
    };
    set(TCP_KEEPIDLE, kKeepAliveSeconds);
    set(TCP_KEEPINTVL, kKeepAliveSeconds);
    set(TCP_KEEPCNT, 3);
  }

  // Shows our certificate and checks the member's.
  Status Greet(TimePoint end) {
    tls_.emplace(socket_, *context_);
    error_code failure;
    tls_->set_verify_callback(ssl::host_name_verification(host_), failure);
    if (!NumericHost(host_)) SSL_set_tlsext_host_name(tls_->native_handle(), host_.c_str());
    failure = Run(end, [&](auto done) {
      tls_->async_handshake(ssl::stream_base::client, std::move(done));
    });
    if (!failure) return Ok();
    if (IsOfTls(failure)) return Failed(failure);
    // A member that speaks no TLS does the one, or the other: it waits for the rest of a request.
    Close();
    const bool is_silent = failure == asio::error::timed_out;
    return Error{is_silent ? Code::kTimeout : Code::kPeerLost,
                 where_ + (is_silent ? " did not greet over TLS"
                                     : " closed the connection instead of greeting over TLS")};
  }

  error_code Write(const EtcdRequest& request, TimePoint end) {
    http::request<http::string_body> message(http::verb::post, request.path, 11, request.body);
    message.set(http::field::host, where_);
    message.set(http::field::content_type, "application/json");
    // A watch at a member that has lost its leader ends, instead of being silent for ever.
    message.set("Grpc-Metadata-hasleader", "true");
    if (!request.token.empty()) message.set(http::field::authorization, request.token);
    message.prepare_payload();
    return Run(end, [&](auto done) {
      OnStream([&](auto& stream) {
        http::async_write(stream, message, [done](const error_code& failure, size_t) mutable {
          done(failure);
        });
      });
    });
  }

  // True: more of the answer is here. False: `until` came first; the reading goes on by itself.
  Result<bool> AwaitMore(TimePoint until) {
    if (!reading_) {
      reading_ = true;
      OnStream([&](auto& stream) {
        http::async_read_some(stream, buffer_, *parser_, [this](const error_code& failure, size_t) {
          reading_ = false;
          read_failure_ = failure;
        });
      });
    }
    RunUntil(until, [this] { return !reading_; });
    if (reading_) return false;
    if (read_failure_) return Failed(read_failure_);
    return true;
  }

  template <class F>
  void OnStream(F&& use) {
    if (tls_) {
      use(*tls_);
    } else {
      use(socket_);
    }
  }

  template <class F>
  void RunUntil(TimePoint until, F&& is_over) {
    loop_.restart();
    loop_.poll();  // also where `until` has passed already
    for (TimePoint now = RealClock().Monotonic();
         !is_over() && now < until && !cancel_.cancelled(); now = RealClock().Monotonic()) {
      const Duration left = until - now;
      loop_.run_one_for(cancel_.can_be_cancelled() ? std::min(left, kLook) : left);
    }
  }

  // Runs one operation to its end, or until `end`: the connection is of no more use then.
  template <class F>
  error_code Run(TimePoint end, F&& start) {
    std::optional<error_code> outcome;
    start([&outcome](const error_code& failure) { outcome = failure; });
    RunUntil(end, [&] { return outcome.has_value(); });
    if (outcome) return *outcome;
    Close();
    loop_.restart();
    loop_.run();
    return asio::error::timed_out;
  }

  // Whoever asked knows how long this member had, and says so.
  Error Silent() {
    Close();
    return {Code::kTimeout, where_ + " did not answer"};
  }

  Error Failed(const error_code& failure) {
    if (failure == asio::error::timed_out) return Silent();
    const bool was_open = IsOpen();
    Close();
    if (IsOfTls(failure)) return FailedTls(failure);
    if (failure == ssl::error::stream_truncated || failure == http::error::end_of_stream ||
        failure == asio::error::eof || failure == http::error::partial_message ||
        failure == asio::error::connection_reset || failure == asio::error::broken_pipe) {
      return {Code::kPeerLost, where_ + " closed the connection"};
    }
    if (IsOfHttp(failure)) {
      return {Code::kCorrupt, where_ + " does not answer in HTTP (" + failure.message() + ")"};
    }
    return {Code::kPeerLost, where_ + (was_open ? " cannot be reached: " : ": ") +
                                 failure.message()};
  }

  Error FailedTls(const error_code& failure) {
    const int reason = ERR_GET_REASON(static_cast<unsigned long>(failure.value()));
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      const char* why = X509_verify_cert_error_string(SSL_get_verify_result(tls_->native_handle()));
      return {Code::kInvalid, where_ + " has a certificate that our CA file does not vouch for (" +
                                  why + ")"};
    }
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
      return {Code::kInvalid, where_ + " does not speak TLS"};
    }
    if (IsOfCertificate(reason - SSL_AD_REASON_OFFSET)) {
      return {Code::kInvalid, where_ + " refused our certificate (" + failure.message() + ")"};
    }
    return {Code::kPeerLost, where_ + " broke off TLS (" + failure.message() + ")"};
  }

  void Close() {
    error_code ignored;
    socket_.close(ignored);
  }

  const std::string where_;
  const std::string host_;
  const std::unique_ptr<ssl::context> context_;  // null: no TLS
  CancelToken cancel_;
  asio::io_context loop_{1};
  Socket socket_{loop_};
  std::optional<TlsStream> tls_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string lines_;
  bool reading_ = false;
  error_code read_failure_;
};

Result<std::unique_ptr<EtcdConnection>> EtcdConnection::Open(const EtcdMember& member,
                                                             const std::optional<EtcdTls>& tls,
                                                             size_t turn, TimePoint end,
                                                             const CancelToken& cancel) {
  std::unique_ptr<ssl::context> context;
  if (tls) {
    KEEL_TRY_ASSIGN(context, TlsContext(*tls));
  }
  KEEL_TRY_ASSIGN(const std::vector<std::string> numbers,
                  ResolveAll(member.host, end - RealClock().Monotonic()));
  auto exchange = std::make_unique<Exchange>(member, std::move(context), cancel);
  KEEL_TRY(exchange->Connect(numbers[turn % numbers.size()], member.port, end));
  return std::unique_ptr<EtcdConnection>(new EtcdConnection(std::move(exchange)));
}

EtcdConnection::EtcdConnection(std::unique_ptr<Exchange> exchange)
    : exchange_(std::move(exchange)) {}

EtcdConnection::~EtcdConnection() = default;

Result<EtcdAnswer> EtcdConnection::Ask(const EtcdRequest& request, TimePoint end) {
  EtcdAnswer answer;
  KEEL_TRY_ASSIGN(answer.status, exchange_->Begin(request, end));
  KEEL_TRY_ASSIGN(answer.body, exchange_->Rest());
  return answer;
}

Result<std::string> EtcdConnection::Rest() { return exchange_->Rest(); }

Result<int> EtcdConnection::Begin(const EtcdRequest& request, TimePoint end) {
  return exchange_->Begin(request, end);
}

Result<std::optional<std::string>> EtcdConnection::Line(TimePoint until,
                                                        const CancelToken& cancel) {
  return exchange_->Line(until, cancel);
}

void EtcdConnection::Heed(const CancelToken& cancel) { exchange_->Heed(cancel); }

bool EtcdConnection::usable() const { return exchange_->IsOpen(); }

}  // namespace keel
