// Presence: connections that tell of news, and show that a process is gone (PROTOCOL.md section 3).
// Every supervisor has a server, since each may come to be the coordinator. It also answers whoever
// asks which board of the job this host follows (elastic/board/ask.h).
// Promises   nothing is decided here, and garbage only closes its own connection. A lost connection
//            is made again, with pauses that grow to two seconds, until told otherwise. Strangers
//            that connect and say nothing cannot use up the descriptors: the oldest of them is
//            closed for the next. For a peer that does not read, only a few lines are kept. Where
//            the job has a token, nobody is heard who has not shown it (elastic/board/peer_seal.h).
// Does not   read or write the board.
// Threads    the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/seldom.h"
#include "elastic/board/peer_seal.h"
#include "store/port_range.h"

namespace keel {

class PresenceConnection;

// The server keeps so many connections that have not said who they are, if a quarter of this
// process's descriptors is as many: all hosts of a large job may come at one moment, and need some
// time to speak.
inline constexpr size_t kSilentConnectionsMax = 1024;

// The coordinator's side, and that of those who may become it.
class PresenceServer {
 public:
  struct Events {
    std::function<void(int64_t slot, const std::string& incarnation)> on_opened;
    std::function<void(int64_t slot, const std::string& incarnation)> on_closed;
    std::function<void(int64_t slot)> on_news;
    // Told only where the job has a token. Null: nobody wants to know.
    std::function<void(int64_t slot, const std::string& incarnation)> on_beat = {};
    // The answer to "ask <job>", without its line feed. Null: nobody is answered.
    std::function<std::string(const std::string& job)> on_ask;
    // Whether the board of that generation is kept here. Null: none is.
    std::function<bool(const std::string& generation)> on_vouch = {};
  };
  struct Where {
    std::string bind;     // numeric address; empty: all of this host's
    uint16_t port = 0;    // another one if that is taken; 0: any
    PortRange ports = {}; // among which `any` is chosen
    bool is_only = false; // no port but that will do
    size_t silent_max = kSilentConnectionsMax;
    std::optional<Seal> seal = {};   // of the job's token; nothing: anybody is believed
  };
  static Result<std::unique_ptr<PresenceServer>> Open(boost::asio::io_context& loop, Where where,
                                                      Events events);
  ~PresenceServer();

  uint16_t port() const { return port_; }
  // Tells all members that the board has changed.
  void Look();
  // How many connections are there of those who said who they are.
  size_t members() const;

 private:
  struct Session;
  PresenceServer(boost::asio::io_context& loop, const Where& where, Events events);
  void Accept();
  void AcceptLater();
  void TellNotAccepted(const std::string& why);
  void Admit(boost::asio::ip::tcp::socket socket);
  void OnLine(const std::shared_ptr<Session>& session, const std::string& line);
  // What it says in the clear, if that may be believed; answers a question, and what begins a
  // sealed session. Nothing: no more is to be done with it.
  std::optional<std::string> Opened(Session& session, const std::string& line);
  std::string Answer(const std::string& line) const;
  void Refuse(const std::shared_ptr<Session>& session, const std::string& line);
  void OnClosed(const std::shared_ptr<Session>& session);

  const Events events_;
  const size_t silent_max_;
  const std::optional<Seal> seal_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_again_;
  uint16_t port_ = 0;
  Seldom not_accepted_{std::chrono::minutes(1)};
  std::set<std::shared_ptr<Session>> sessions_;
  std::deque<std::weak_ptr<Session>> silent_;   // without a hello, or gone; the oldest first
};

// A member's side.
class PresenceClient {
 public:
  // `on_lost`: an open connection to the present server was lost, or cannot be made again.
  PresenceClient(boost::asio::io_context& loop, std::function<void()> on_look,
                 std::function<void()> on_lost = {}, std::optional<Seal> seal = {});
  ~PresenceClient();

  // Both come from the board, and change when the coordinator or the slot changes.
  void SetServer(const std::string& address);
  void SetSelf(int64_t slot, const std::string& incarnation);
  // Tells the coordinator that this member has written to the board.
  void News();
  // ... that it has just raised its beat there, which a stranger may spoil before it is read. Only
  // where the job has a token.
  void Beat();

 private:
  void Connect();
  void Drop();
  void TryAgain();
  void Begin();
  void Introduce();
  void Say(const std::string& line);
  void OnLine(const std::string& line);

  boost::asio::io_context& loop_;
  const std::function<void()> on_look_;
  const std::function<void()> on_lost_;
  const std::optional<Seal> seal_;
  boost::asio::steady_timer again_;
  std::string server_;
  std::string hello_;
  Duration pause_{0};
  std::optional<TimePoint> introduced_;   // of the connection that is there
  bool was_open_ = false;   // to the present server
  std::shared_ptr<PresenceConnection> connection_;
  bool is_begun_ = false;                  // it is connected
  std::string nonce_;                      // of this connection, where there is a seal
  std::optional<SealedSession> session_;   // once the server has shown that it has the token
};

}  // namespace keel
