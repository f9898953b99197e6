// One loop: it accepts, reads a header, answers, closes.
#include "elastic/status/http_server.h"

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/system/system_error.hpp>

#include <array>
#include <set>
#include <thread>
#include <utility>

#include "elastic/process/quiet_thread.h"
#include "store/host_port.h"

namespace keel {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kHeaderMax = 8 * 1024;
constexpr std::chrono::seconds kReadLimit(5);      // for the whole header
constexpr std::chrono::seconds kWriteLimit(30);    // for the whole answer
constexpr std::chrono::seconds kDrainLimit(1);     // for what was sent beyond the header
constexpr size_t kDrainMax = 64 * 1024;
// Once all places are taken: how long a client may take to send its header, how long to take its
// answer, and how often that is checked.
constexpr Duration kPatience = std::chrono::milliseconds(500);
constexpr Duration kPatienceAnswered = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kSweepPause(100);
// A connection that gets no descriptor would be offered again at once, for ever.
constexpr std::chrono::milliseconds kAcceptPause(200);
constexpr int kNiceness = 10;

std::string_view ViewOf(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

StatusReply PlainReply(int status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text + "\n"),
          "default-src 'none'"};
}

class HttpServer::Service {
 public:
  Service(std::string what, Clock& clock, Answer answer)
      : what_(std::move(what)), clock_(clock), answer_(std::move(answer)), acceptor_(loop_),
        pause_(loop_) {}

  ~Service() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

  // `at`: empty for all addresses of this host, of IPv4 alone where the machine has no IPv6.
  Result<tcp::endpoint> Listen(const std::string& at, uint16_t port) {
    if (!at.empty()) return ListenAt(at, port);
    error_code closed;
    Result<tcp::endpoint> bound = ListenAt("::", port);
    if (bound.ok() || is_taken_) return bound;
    acceptor_.close(closed);
    return ListenAt("0.0.0.0", port);
  }

  void Start() {
    Accept();
    thread_ = StartQuietThread("keel-http", [this] {
      // The job's threads come first. If the system refuses the priority, the thread runs without
      // it.
      (void)setpriority(PRIO_PROCESS, 0, kNiceness);
      loop_.run();
    });
  }

  void Post(std::function<void()> work) { asio::post(loop_, std::move(work)); }

 private:
  class Session;

  Result<tcp::endpoint> ListenAt(const std::string& at, uint16_t port) {
    error_code failure;
    const auto address = asio::ip::make_address(at, failure);
    const tcp::endpoint wanted(address, port);
    if (!failure) acceptor_.open(wanted.protocol(), failure);
    // A launcher that is started again still finds the connections of its predecessor.
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure && at == "::") acceptor_.set_option(asio::ip::v6_only(false), failure);
    if (!failure) acceptor_.bind(wanted, failure);
    if (!failure) acceptor_.listen(tcp::acceptor::max_listen_connections, failure);
    const tcp::endpoint bound = failure ? wanted : acceptor_.local_endpoint(failure);
    if (!failure) return bound;
    is_taken_ = failure == asio::error::address_in_use;
    return Error{Code::kInvalid, what_ + " cannot be at " + AddressText(at, port) + ": " +
                                     failure.message()};
  }

  void Accept();
  void Admit(tcp::socket socket);
  void Sweep();
  void Leave(const std::shared_ptr<Session>& session);

  const std::string what_;
  Clock& clock_;
  const Answer answer_;
  asio::io_context loop_;
  tcp::acceptor acceptor_;
  bool is_taken_ = false;                        // the port, so that another address will not do
  asio::steady_timer pause_;                     // before the next one is accepted
  std::set<std::shared_ptr<Session>> sessions_;
  std::thread thread_;
};

// One connection with its one request.
class HttpServer::Service::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Service& service, tcp::socket socket, TimePoint now)
      : service_(service), stream_(std::move(socket)), begun_(now) {
    parser_.header_limit(kHeaderMax);
  }

  void Start() {
    stream_.expires_after(kReadLimit);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](const error_code& failure, size_t) {
                              self->OnHeader(failure);
                            });
  }
  // It has had its time, and others wait.
  void CloseIfSlow(TimePoint now) {
    const Duration passed = now - begun_;
    const bool is_over = phase_ == Phase::kReading   ? passed > kPatience
                         : phase_ == Phase::kWriting ? passed > kPatienceAnswered
                                                     : true;
    if (is_over) stream_.close();
  }

 private:
  enum class Phase { kReading, kWriting, kDraining };

  void OnHeader(const error_code& failure) {
    phase_ = Phase::kWriting;
    if (!failure) {
      const auto& message = parser_.get();
      return Write(service_.answer_({ViewOf(message.method_string()), ViewOf(message.target()),
                                    ViewOf(message[http::field::host]),
                                    ViewOf(message[http::field::authorization])}));
    }
    if (failure == http::error::header_limit || failure == http::error::buffer_overflow) {
      return Write(PlainReply(431, "the header is too long"));
    }
    const bool is_garbage =
        failure.category() == http::make_error_code(http::error::bad_method).category() &&
        failure != http::error::end_of_stream && failure != http::error::partial_message;
    if (is_garbage) return Write(PlainReply(400, "this is no HTTP request"));
    End();
  }

  void Write(StatusReply reply) {
    reply_ = std::move(reply);
    response_.version(11);
    response_.result(static_cast<unsigned>(reply_.status));
    response_.set(http::field::content_type, reply_.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set(http::field::connection, "close");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    if (!reply_.policy.empty()) response_.set("Content-Security-Policy", reply_.policy);
    if (reply_.status == 405) {
      response_.set(http::field::allow, "GET");
    }
    if (reply_.status == 401) {
      response_.set(http::field::www_authenticate, "Bearer");
    }
    // A reply to HEAD tells the length of what GET would get.
    const bool is_head = parser_.get().method() == http::verb::head;
    response_.body() = {reply_.body->data(), is_head ? 0 : reply_.body->size()};
    response_.content_length(reply_.body->size());
    stream_.expires_after(kWriteLimit);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](const error_code& failure, size_t) {
                        if (failure) return self->End();
                        self->Finish();
                      });
  }

  // If it were closed at once, data that was sent but not read would take the answer back.
  void Finish() {
    phase_ = Phase::kDraining;
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kDrainLimit);
    Drain();
  }

  void Drain() {
    stream_.async_read_some(asio::buffer(rest_),
                            [self = shared_from_this()](const error_code& failure, size_t bytes) {
                              self->drained_ += bytes;
                              if (failure || self->drained_ > kDrainMax) return self->End();
                              self->Drain();
                            });
  }

  void End() {
    stream_.close();
    service_.Leave(shared_from_this());
  }

  Service& service_;
  beast::tcp_stream stream_;
  const TimePoint begun_;
  Phase phase_ = Phase::kReading;
  beast::flat_buffer buffer_{2 * kHeaderMax};
  http::request_parser<http::empty_body> parser_;
  StatusReply reply_;
  http::response<http::span_body<const char>> response_;
  std::array<char, 2048> rest_;
  size_t drained_ = 0;
};

void HttpServer::Service::Accept() {
  acceptor_.async_accept([this](const error_code& failure, tcp::socket socket) {
    if (failure == asio::error::operation_aborted) return;
    if (!failure) Admit(std::move(socket));
    const bool is_full = sessions_.size() >= kHttpConnectionsMax;
    if (!failure && !is_full) return Accept();
    pause_.expires_after(failure ? kAcceptPause : kSweepPause);
    pause_.async_wait([this](const error_code&) { Sweep(); });
  });
}

// Further clients wait in the system's queue.
void HttpServer::Service::Sweep() {
  const TimePoint now = clock_.Monotonic();
  for (const auto& session : sessions_) session->CloseIfSlow(now);
  if (sessions_.size() < kHttpConnectionsMax) return Accept();
  pause_.expires_after(kSweepPause);
  pause_.async_wait([this](const error_code&) { Sweep(); });
}

void HttpServer::Service::Admit(tcp::socket socket) {
  const auto session = std::make_shared<Session>(*this, std::move(socket), clock_.Monotonic());
  sessions_.insert(session);
  session->Start();
}

// A place is free, so a client that waits for it need not wait for the next check.
void HttpServer::Service::Leave(const std::shared_ptr<Session>& session) {
  const bool was_full = sessions_.size() >= kHttpConnectionsMax;
  sessions_.erase(session);
  if (was_full) pause_.cancel();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Open(const std::string& what,
                                                     const std::string& address, uint16_t port,
                                                     Clock& clock, Answer answer) {
  // Event loops throw if the system gives them no descriptor.
  try {
    auto service = std::make_unique<Service>(what, clock, std::move(answer));
    KEEL_TRY_ASSIGN(const tcp::endpoint bound, service->Listen(address, port));
    std::unique_ptr<HttpServer> server(new HttpServer(std::move(service)));
    server->port_ = bound.port();
    server->service_->Start();
    return server;
  } catch (const boost::system::system_error& failed) {
    return Error{Code::kForeign, "starting " + what + ": " + failed.what()};
  }
}

HttpServer::HttpServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}

HttpServer::~HttpServer() = default;

void HttpServer::Post(std::function<void()> work) { service_->Post(std::move(work)); }

}  // namespace keel
