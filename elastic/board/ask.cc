// One connection to each peer, all in one poll().
#include "elastic/board/ask.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "elastic/board/peer_seal.h"
#include "elastic/board/strangers.h"
#include "store/host_port.h"
#include "store/store_hail.h"

namespace keel {
namespace {

using Kind = PeerAnswer::Kind;

constexpr size_t kAnswerMax = 1024;
constexpr Duration kCancelLook = std::chrono::milliseconds(20);
constexpr std::string_view kSight = "at ";
constexpr std::string_view kUnknown = "no board";
constexpr std::string_view kOtherJob = "another job";

PeerAnswer Parse(const std::string& line) {
  if (line == kUnknown) return {Kind::kUnknown, {}};
  if (line == kOtherJob) return {Kind::kOtherJob, {}};
  const size_t space = line.find(' ', kSight.size());
  if (!line.starts_with(kSight) || space == std::string::npos) return {Kind::kNothing, {}};
  const Result<int64_t> age = ParseInteger(line.substr(kSight.size(), space - kSight.size()));
  const Result<BoardPlace> place = ParseBoardPlace("an answer", line.substr(space + 1));
  const Result<HostPort> where = ParseEndpoint(place.ok() ? place->address : "");
  if (!age.ok() || *age < 0 || !place.ok() || !where.ok() || !where->port) {
    return {Kind::kNothing, {}};
  }
  return {Kind::kSight, {*place, std::chrono::milliseconds(std::min<int64_t>(*age, 1 << 30))}};
}

// The conversation with one peer.
class Conversation {
 public:
  Conversation(const std::string& address, const PeerQuestion& question)
      : address_(address), to_say_(std::string(kStoreHail) + "\n"), seal_(question.seal) {
    if (seal_) {
      const bool is_ask = question.generation.empty();
      sealed_ = {std::string(is_ask ? kVerbAsk : kVerbVouch),
                 is_ask ? question.job : question.generation, Seal::Nonce()};
    }
    question_ = (seal_ ? QuestionLine(*seal_, sealed_) : std::string(kAsk) + question.job) + "\n";
    const Result<HostPort> where = ParseEndpoint(address);
    if (!where.ok() || !where->port) return;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(*where->port);
    if (getaddrinfo(where->host.c_str(), port.c_str(), &hints, &found) != 0) return;
    fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool begun = fd_ >= 0 && (connect(fd_, found->ai_addr, found->ai_addrlen) == 0 ||
                                    errno == EINPROGRESS);
    if (!begun) End({errno == ECONNREFUSED ? Kind::kRefused : Kind::kNothing, {}});
    freeaddrinfo(found);
  }
  Conversation(Conversation&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        address_(std::move(other.address_)),
        to_say_(std::move(other.to_say_)),
        seal_(std::move(other.seal_)),
        sealed_(std::move(other.sealed_)),
        question_(std::move(other.question_)),
        heard_(std::move(other.heard_)),
        answer_(std::move(other.answer_)) {}
  Conversation& operator=(Conversation&&) = delete;
  ~Conversation() { End(answer_); }

  bool is_over() const { return fd_ < 0; }
  const PeerAnswer& answer() const { return answer_; }
  pollfd Waiting() const {
    const short events = to_say_.empty() ? POLLIN : POLLOUT;
    return {fd_, events, 0};
  }
  // poll() has said that there is something to do.
  void GoOn() {
    if (to_say_.empty()) return Hear();
    int failure = 0;
    socklen_t bytes = sizeof failure;
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure != 0) return End({failure == ECONNREFUSED ? Kind::kRefused : Kind::kNothing, {}});
    // What is said is shorter than any socket's buffer, so it is sent whole.
    if (send(fd_, to_say_.data(), to_say_.size(), MSG_NOSIGNAL) < 0) {
      return End({Kind::kNothing, {}});
    }
    to_say_.clear();
  }

 private:
  void Hear() {
    char piece[512];
    const ssize_t got = recv(fd_, piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) heard_.append(piece, static_cast<size_t>(got));
    const size_t end = heard_.find('\n');
    if (end != std::string::npos) {
      const std::string line = heard_.substr(0, end);
      heard_.clear();   // it says nothing more before it is asked
      if (line == kStoreReply) return End({Kind::kStore, {}});
      if (line != kPeerReply) return End(Judged(line));
      to_say_ = std::exchange(question_, "");
      return;
    }
    if (got <= 0 || heard_.size() > kAnswerMax) End({Kind::kNothing, {}});
  }
  PeerAnswer Judged(const std::string& line) const {
    if (line == kClosed) return {Kind::kClosed, {}};
    if (!seal_) return Parse(line);
    const auto answer = OpenAnswer(*seal_, sealed_, line);
    if (answer && sealed_.verb == kVerbVouch) {
      return {*answer == kYes ? Kind::kVouches : Kind::kUnknown, {}};
    }
    if (answer) return Parse(*answer);
    TellStranger(address_, "what it answers has no seal of this job's token");
    return {Kind::kNothing, {}};
  }
  void End(PeerAnswer answer) {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
    answer_ = std::move(answer);
  }

  int fd_ = -1;
  std::string address_;
  std::string to_say_;     // now
  std::optional<Seal> seal_;
  SealedQuestion sealed_;
  std::string question_;   // for a supervisor
  std::string heard_;
  PeerAnswer answer_;
};

}  // namespace

std::vector<PeerAnswer> AskPeers(const std::vector<std::string>& addresses,
                                 const PeerQuestion& question, Duration limit,
                                 const CancelToken& cancel, const AskedLonger& longer) {
  const TimePoint begin = RealClock().Monotonic();
  std::vector<Conversation> all;
  all.reserve(addresses.size());
  for (const std::string& address : addresses) all.emplace_back(address, question);
  while (!cancel.cancelled()) {
    const Duration spent = RealClock().Monotonic() - begin;
    const size_t from = spent < limit ? 0 : longer.from;
    const Duration left = (spent < limit ? limit : longer.limit) - spent;
    std::vector<pollfd> waiting;
    std::vector<Conversation*> whose;
    bool is_named = false;
    for (size_t i = from; i < all.size(); ++i) {
      is_named |= all[i].answer().kind == Kind::kSight;
      if (all[i].is_over()) continue;
      waiting.push_back(all[i].Waiting());
      whose.push_back(&all[i]);
    }
    if (spent >= limit && is_named) break;
    if (waiting.empty() || left <= Duration(0)) break;
    const auto slice =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(left, kCancelLook)).count();
    if (poll(waiting.data(), waiting.size(), static_cast<int>(slice)) <= 0) continue;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) whose[i]->GoOn();
    }
  }
  std::vector<PeerAnswer> answers;
  for (const Conversation& one : all) answers.push_back(one.answer());
  return answers;
}

bool Vouches(const std::string& address, const std::string& generation, const Seal& seal,
             Duration limit, const CancelToken& cancel) {
  const auto answers = AskPeers({address}, {"", seal, generation}, limit, cancel);
  return answers.front().kind == Kind::kVouches;
}

std::string AnswerText(bool is_our_job, const std::optional<PeerSight>& sight) {
  if (!is_our_job) return std::string(kOtherJob);
  if (!sight) return std::string(kUnknown);
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(sight->heard_ago).count();
  return std::string(kSight) + std::to_string(age) + " " + BoardPlaceText(sight->place);
}

}  // namespace keel
