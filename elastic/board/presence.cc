// Both ends of the presence connections, which carry lines over TCP.
#include "elastic/board/presence.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/line_framer.h"
#include "base/log.h"
#include "base/text.h"
#include "elastic/board/ask.h"
#include "elastic/board/strangers.h"
#include "store/host_port.h"
#include "store/listen_socket.h"
#include "store/store_hail.h"

namespace keel {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kLineMax = 1024;
// A peer that has not read so many lines is suspended or lost, and will soon be expired.
constexpr size_t kUnsentMax = 64;
constexpr Duration kPauseFirst = std::chrono::milliseconds(50);
constexpr Duration kPauseLast = std::chrono::seconds(2);
constexpr int kKeepAliveSeconds = 10;
// If no descriptor is left for a connection, the system offers it again at once, without end. A
// pause keeps the loop free meanwhile.
constexpr Duration kAcceptPause = std::chrono::milliseconds(200);

size_t DescriptorsMax() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// Of whoever is at the other end, as people write it.
std::string AddressOf(const tcp::socket& socket) {
  error_code unknown;
  const asio::ip::address address = socket.remote_endpoint(unknown).address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
}

}  // namespace

// One connection: lines to and from a peer.
class PresenceConnection : public std::enable_shared_from_this<PresenceConnection> {
 public:
  explicit PresenceConnection(tcp::socket socket) : socket_(std::move(socket)), framer_(kLineMax) {}

  tcp::socket& socket() { return socket_; }

  void Start(std::function<void(const std::string& line)> on_line,
             std::function<void()> on_closed) {
    on_line_ = std::move(on_line);
    on_closed_ = std::move(on_closed);
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    KeepOpen();
    Read();
  }

  // A line that has no room is lost, and must not be sealed before: it would be missing.
  bool has_room() const { return socket_.is_open() && unsent_.size() < kUnsentMax; }
  void Send(const std::string& line) {
    if (!has_room()) return;
    unsent_.push_back(line + "\n");
    if (unsent_.size() == 1) Write();
  }

  // Closes the connection without calling on_closed.
  void Close() {
    on_line_ = nullptr;
    on_closed_ = nullptr;
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  // For hours nothing may pass here. Firewalls between forget such connections, and one that only
  // one end still knows would hurry nobody.
  void KeepOpen() {
    error_code ignored;
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    for (const int option : {TCP_KEEPIDLE, TCP_KEEPINTVL}) {
      setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &kKeepAliveSeconds,
                 sizeof kKeepAliveSeconds);
    }
  }
  void Read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](const error_code& failure, size_t bytes) {
                              self->OnBytes(failure, bytes);
                            });
  }

  void OnBytes(const error_code& failure, size_t bytes) {
    if (!socket_.is_open()) return;
    const Status fed = failure ? Status(Error{Code::kPeerLost, failure.message()})
                               : framer_.Feed({buffer_.data(), bytes});
    while (std::optional<std::string> line = framer_.Next()) {
      if (const auto on_line = on_line_) on_line(*line);
    }
    if (!socket_.is_open()) return;
    if (fed.ok()) return Read();
    const auto on_closed = on_closed_;
    Close();
    if (on_closed) on_closed();
  }

  void Write() {
    asio::async_write(socket_, asio::buffer(unsent_.front()),
                      [self = shared_from_this()](const error_code& failure, size_t) {
                        if (failure || !self->socket_.is_open()) return;
                        self->unsent_.pop_front();
                        if (!self->unsent_.empty()) self->Write();
                      });
  }

  tcp::socket socket_;
  LineFramer framer_;
  std::function<void(const std::string& line)> on_line_;
  std::function<void()> on_closed_;
  std::array<char, 512> buffer_;
  std::deque<std::string> unsent_;
};

// --- The coordinator's side ---

struct PresenceServer::Session {
  std::shared_ptr<PresenceConnection> connection;
  int64_t slot = -1;
  std::string incarnation;    // empty: the peer has not said hello
  std::string address = {};
  std::optional<SealedSession> sealed = {};   // once it has greeted, where the job has a token

  void Say(const std::string& line) {
    if (connection->has_room()) connection->Send(sealed ? sealed->Say(line) : line);
  }
};

Result<std::unique_ptr<PresenceServer>> PresenceServer::Open(asio::io_context& loop, Where where,
                                                             Events events) {
  const auto any = [&] { return ListenSocket::ListenWithin(where.bind, where.ports); };
  Result<ListenSocket> socket =
      where.port == 0 ? any() : ListenSocket::Listen(where.bind, where.port);
  if (!socket.ok() && where.port != 0 && !where.is_only) socket = any();
  if (!socket.ok()) return socket.error().Doing("listening for other hosts");
  std::unique_ptr<PresenceServer> server(new PresenceServer(
      loop, where, std::move(events)));
  server->port_ = socket->port();
  error_code failure;
  server->acceptor_.assign(socket->is_ipv6() ? tcp::v6() : tcp::v4(), socket->number(), failure);
  if (failure) return Error{Code::kForeign, "listening for other hosts: " + failure.message()};
  (void)socket->Release();
  server->Accept();
  return server;
}

PresenceServer::PresenceServer(asio::io_context& loop, const Where& where, Events events)
    : events_(std::move(events)),
      silent_max_(std::min(where.silent_max, DescriptorsMax() / 4)), seal_(where.seal),
      acceptor_(loop), accept_again_(loop) {}

PresenceServer::~PresenceServer() {
  for (const auto& session : sessions_) session->connection->Close();
}

void PresenceServer::Accept() {
  acceptor_.async_accept([this](const error_code& failure, tcp::socket socket) {
    if (failure == asio::error::operation_aborted) return;
    if (failure) {
      TellNotAccepted(failure.message());
      return AcceptLater();
    }
    Admit(std::move(socket));
    Accept();
  });
}

void PresenceServer::TellNotAccepted(const std::string& why) {
  const std::optional<int64_t> times = not_accepted_.Tell(RealClock().Monotonic());
  if (times) LogWarn("presence-accept", {{"reason", why}, {"times", *times}});
}

void PresenceServer::AcceptLater() {
  accept_again_.expires_after(kAcceptPause);
  accept_again_.async_wait([this](const error_code& failure) {
    if (!failure) Accept();
  });
}

void PresenceServer::Admit(tcp::socket socket) {
  auto session = std::make_shared<Session>();
  session->address = AddressOf(socket);
  session->connection = std::make_shared<PresenceConnection>(std::move(socket));
  sessions_.insert(session);
  const std::weak_ptr<Session> weak = session;
  silent_.push_back(weak);
  std::erase_if(silent_, [](const std::weak_ptr<Session>& one) {
    const auto held = one.lock();
    return held == nullptr || !held->incarnation.empty();
  });
  if (silent_.size() > silent_max_) {
    const auto oldest = silent_.front().lock();
    oldest->connection->Close();
    sessions_.erase(oldest);
  }
  session->connection->Start(
      [this, weak](const std::string& line) { OnLine(weak.lock(), line); },
      [this, weak] { OnClosed(weak.lock()); });
}

std::string PresenceServer::Answer(const std::string& line) const {
  if (!seal_) return line.starts_with(kAsk) ? events_.on_ask(line.substr(kAsk.size()))
                                            : std::string(kClosed);
  const auto question = OpenQuestion(*seal_, line);
  if (!question) return std::string(kClosed);
  if (question->verb == kVerbAsk) {
    return AnswerLine(*seal_, *question, events_.on_ask(question->subject));
  }
  if (question->verb != kVerbVouch) return std::string(kClosed);
  const bool is_kept = events_.on_vouch && events_.on_vouch(question->subject);
  return AnswerLine(*seal_, *question, std::string(is_kept ? kYes : kNo));
}

std::optional<std::string> PresenceServer::Opened(Session& session, const std::string& line) {
  const bool is_question = line.starts_with(kAsk) || line.starts_with(kSealed);
  if (events_.on_ask && (line == kStoreHail || is_question)) {
    const std::string answer = is_question ? Answer(line) : std::string(kPeerReply);
    session.connection->Send(answer);
    if (answer == kClosed) {
      TellStranger(session.address, seal_ ? "it asks without this job's token"
                                          : "it asks with a token, and this job has none");
    }
    return std::nullopt;
  }
  if (!seal_) return line;
  if (session.sealed) {
    std::optional<std::string> said = session.sealed->Hear(line);
    return said ? said : std::optional<std::string>("");   // which is no word of members
  }
  if (!line.starts_with(kGreet)) return "";
  const std::string of_member = line.substr(kGreet.size());
  const std::string own = Seal::Nonce();
  session.connection->Send(ChallengeLine(*seal_, of_member, own));
  session.sealed.emplace(*seal_, of_member, own, PeerEnd::kCoordinator);
  return std::nullopt;
}

void PresenceServer::OnLine(const std::shared_ptr<Session>& session, const std::string& line) {
  if (session == nullptr) return;
  const std::optional<std::string> said = Opened(*session, line);
  if (!said) return;
  if (*said == "news" && (!seal_ || !session->incarnation.empty())) {
    return events_.on_news(session->slot);
  }
  if (seal_ && *said == "beat" && !session->incarnation.empty()) {
    return events_.on_beat ? events_.on_beat(session->slot, session->incarnation) : void();
  }
  const std::vector<std::string> words = SplitList(*said, ' ');
  const bool is_hello = words.size() == 3 && words[0] == "hello" && !words[2].empty() &&
                        session->incarnation.empty();
  const Result<int64_t> slot =
      is_hello ? ParseInteger(words[1]) : Error{Code::kCorrupt, "no word of members"};
  if (!slot.ok()) return Refuse(session, line);
  session->slot = *slot;
  session->incarnation = words[2];
  events_.on_opened(session->slot, session->incarnation);
}

void PresenceServer::Refuse(const std::shared_ptr<Session>& session, const std::string& line) {
  if (seal_) {
    TellStranger(session->address, "what it says has no seal of this job's token");
  } else {
    LogWarn("presence-garbage", {{"line", Shown(line)}});
  }
  session->connection->Close();
  OnClosed(session);
}

void PresenceServer::OnClosed(const std::shared_ptr<Session>& session) {
  if (session == nullptr || sessions_.erase(session) == 0) return;
  if (session->incarnation.empty()) return;
  // The member may have connected again before the end of this connection was seen.
  const bool again = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
    return other->slot == session->slot && other->incarnation == session->incarnation;
  });
  if (!again) events_.on_closed(session->slot, session->incarnation);
}

size_t PresenceServer::members() const {
  return static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [](const auto& session) { return !session->incarnation.empty(); }));
}

void PresenceServer::Look() {
  for (const auto& session : sessions_) {
    if (!session->incarnation.empty()) session->Say("look");
  }
}

// --- A member's side ---

PresenceClient::PresenceClient(asio::io_context& loop, std::function<void()> on_look,
                               std::function<void()> on_lost, std::optional<Seal> seal)
    : loop_(loop), on_look_(std::move(on_look)), on_lost_(std::move(on_lost)),
      seal_(std::move(seal)), again_(loop) {}

PresenceClient::~PresenceClient() {
  if (connection_) connection_->Close();
}

void PresenceClient::SetServer(const std::string& address) {
  server_ = address;
  was_open_ = false;
  pause_ = Duration(0);
  Drop();
  Connect();
}

void PresenceClient::SetSelf(int64_t slot, const std::string& incarnation) {
  hello_ = "hello " + std::to_string(slot) + " " + incarnation;
  pause_ = Duration(0);
  Drop();
  Connect();
}

void PresenceClient::News() {
  Say("news");
}

void PresenceClient::Beat() {
  if (session_) Say("beat");
}

// Until the server has shown that it has the token, nothing is said: it is told all of it then.
void PresenceClient::Say(const std::string& line) {
  if (!is_begun_ || !connection_->has_room() || (seal_ && !session_)) return;
  connection_->Send(session_ ? session_->Say(line) : line);
}

void PresenceClient::Drop() {
  again_.cancel();
  if (connection_) connection_->Close();
  connection_.reset();
  session_.reset();
  introduced_.reset();
  is_begun_ = false;
}

void PresenceClient::TryAgain() {
  // At once, if it has lasted: whoever is not back in time is taken for dead.
  const bool has_lasted =
      introduced_ && RealClock().Monotonic() - *introduced_ >= kPauseLast;
  Drop();
  pause_ = has_lasted ? Duration(0) : std::clamp(2 * pause_, kPauseFirst, kPauseLast);
  again_.expires_after(pause_);
  again_.async_wait([this](const error_code& failure) {
    if (!failure) Connect();
  });
  if (was_open_ && on_lost_) on_lost_();
}

void PresenceClient::Connect() {
  if (server_.empty() || hello_.empty()) return;
  const Result<HostPort> where = ParseEndpoint(server_);
  error_code failure;
  const auto address =
      asio::ip::make_address(where.ok() ? where->host : std::string("?"), failure);
  if (failure || !where->port) {
    return LogWarn("presence-address", {{"address", Shown(server_)}});
  }
  auto connection = std::make_shared<PresenceConnection>(tcp::socket(loop_));
  connection_ = connection;
  connection->socket().async_connect(
      tcp::endpoint(address, *where->port),
      [this, weak = std::weak_ptr(connection)](const error_code& failed) {
        const auto self = weak.lock();
        if (self == nullptr || self != connection_) return;
        if (failed) return TryAgain();
        self->Start([this](const std::string& line) { OnLine(line); }, [this] { TryAgain(); });
        Begin();
      });
}

void PresenceClient::Begin() {
  is_begun_ = true;
  if (!seal_) return Introduce();
  nonce_ = Seal::Nonce();
  connection_->Send(std::string(kGreet) + nonce_);
}

void PresenceClient::Introduce() {
  Say(hello_);
  Say("news");
  pause_ = Duration(0);
  was_open_ = true;
  introduced_ = RealClock().Monotonic();
}

void PresenceClient::OnLine(const std::string& line) {
  std::optional<std::string> said = line;
  if (session_) {
    said = session_->Hear(line);
  } else if (seal_) {
    const auto theirs = OpenChallenge(*seal_, nonce_, line);
    if (theirs) {
      session_.emplace(*seal_, nonce_, *theirs, PeerEnd::kMember);
      return Introduce();
    }
    said.reset();
  }
  if (said == "look") return on_look_();
  if (said || !seal_) return;
  TellStranger(server_, "it coordinates without this job's token");
  TryAgain();
}

}  // namespace keel
