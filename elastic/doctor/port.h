// DoctorPort: where the doctors of other hosts knock, to learn whether this host can be reached and
// what its clock says; and the calls with which they knock.
// Promises   it answers only those who know the round's name, and ends with its object. Each call
//            of a knocker ends by its deadline.
// Does not   vouch for the ports that workers will listen on: it is only one such port, picked by
//            the system as theirs will be, or the first or last free one of a range.
// Threads    DoctorPort has one of its own; TakeRing() from one other. The rest: any.
// Errors     kTimeout: nobody answered; kPeerLost: refused, or closed in between; kIo.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "store/listen_socket.h"

namespace keel {

class DoctorPort {
 public:
  static Result<std::unique_ptr<DoctorPort>> Open(
      std::string round, Clock& clock, const PortRange& ports = {},
      ListenSocket::From from = ListenSocket::From::kFirst);
  ~DoctorPort();

  uint16_t port() const { return port_; }
  // The connection from the host before ours in the ring (KnockForRing()).
  Result<Fd> TakeRing(TimePoint deadline);

 private:
  struct Visitor {
    Fd fd;
    std::string said = {};   // the part of its first line that has come
    bool is_known = false;   // it may ask for the time
  };

  DoctorPort(std::string round, Clock& clock, PipeEnds stop, Fd listener, uint16_t port);
  void Run();
  void LetIn();
  // Returns false if the visitor is to be dropped.
  bool Serve(Visitor& visitor);
  bool TakeFirstLine(Visitor& visitor);

  const std::string round_;
  Clock& clock_;
  PipeEnds stop_;                    // closing its write end makes the thread leave
  const Fd listener_;
  const uint16_t port_;
  std::vector<Visitor> visitors_;    // the thread's own
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<Fd> ring_;           // guarded by mutex_
  std::thread thread_;
};

struct Knocked {
  int64_t round_trip_ns = 0;
  int64_t clock_ahead_ns = 0;
  int64_t clock_doubt_ns = 0;
};
// Asks that doctor for the time, several times; the shortest round trip counts.
Result<Knocked> Knock(const std::string& number, uint16_t port, const std::string& round,
                      Clock& clock, TimePoint deadline);
// Makes a connection for that doctor's TakeRing().
Result<Fd> KnockForRing(const std::string& number, uint16_t port, const std::string& round,
                        TimePoint deadline);

// Sends all of `out` over one connection while it fills `in` from the other.
Status Exchange(const Fd& to, std::span<const std::byte> out, const Fd& from,
                std::span<std::byte> in, TimePoint deadline);

}  // namespace keel
