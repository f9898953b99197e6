// Links over NCCL between processes that kill themselves in NCCL's calls: whoever survives forms
// again with a newcomer, and what they compute is what nobody's death changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "trainer/group/nccl/communicator.h"

namespace keel {
namespace {

constexpr int kHangMs = 60000;
constexpr Duration kEndLimit = std::chrono::seconds(30);
constexpr uint64_t kLanes = 4;

// What parent and members tell each other. A member that leaves its epoch tells how far it is.
struct Message {
  enum Kind { kEpoch, kId, kBreak, kParked, kFinished } kind = kEpoch;
  int rank = 0, size = 0;
  bool has_id = false;
  std::array<char, sizeof(ncclUniqueId)> id{};
  uint64_t step = 0, state = 1;
};

uint64_t Mix(uint64_t a, uint64_t b) { return (a ^ (b + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd; }

void Tell(int socket, const Message& message) {
  (void)!send(socket, &message, sizeof(message), MSG_NOSIGNAL);
}
// Nothing: the other side is gone.
bool Hear(int socket, Message* message) {
  return recv(socket, message, sizeof(*message), MSG_WAITALL) == sizeof(*message);
}

// --- A member ---

class Member {
 public:
  Member(int socket, uint64_t steps) : socket_(socket), steps_(steps) {
    KEEL_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess, "");
  }

  void Run() {
    for (Message message; Hear(socket_, &message);) {
      if (message.kind != Message::kEpoch) continue;   // a break of what is over
      step_ = message.step;
      state_ = message.state;
      if (!message.has_id) message.id = MakeId();
      const Status ended = RunEpoch(message);
      if (!ended.ok()) Tell(socket_, {.kind = Message::kParked, .step = step_, .state = state_});
    }
  }

 private:
  std::array<char, sizeof(ncclUniqueId)> MakeId() {
    const Result<std::string> id = NewNcclId();
    KEEL_CHECK(id.ok(), id.error().message);
    Message message{.kind = Message::kId};
    std::memcpy(message.id.data(), id->data(), message.id.size());
    Tell(socket_, message);
    return message.id;
  }

  Status RunEpoch(const Message& epoch) {
    const auto link = std::make_shared<Communicator>(NcclLinkSpec{
        std::string(epoch.id.data(), epoch.id.size()), epoch.rank, epoch.size, 0});
    std::thread owner([link] { link->Own(); });
    std::atomic<bool> broken{false}, over{false};
    std::thread listener([&] {
      while (!over) {
        pollfd one{socket_, POLLIN, 0};
        Message message;
        if (poll(&one, 1, 2) <= 0) continue;
        // The next epoch is for whoever has parked.
        if (recv(socket_, &message, sizeof(message), MSG_PEEK | MSG_DONTWAIT) > 0 &&
            message.kind == Message::kEpoch) {
          break;
        }
        if (Hear(socket_, &message) && message.kind != Message::kBreak) continue;
        broken = true;
        link->Abort();
        break;
      }
    });
    Status status = Compute(*link, epoch, broken);
    if (status.ok()) {
      link->Leave();
    } else {
      link->Abort();
    }
    KEEL_CHECK(link->AwaitGone(kEndLimit), link->StateText());
    owner.join();
    if (status.ok()) Tell(socket_, {.kind = Message::kFinished, .step = step_, .state = state_});
    over = true;
    listener.join();
    return status;
  }

  Status Compute(Communicator& link, const Message& epoch, const std::atomic<bool>& broken) {
    KEEL_TRY(link.AwaitReady([&] { return broken.load(); }));
    KEEL_TRY(link.Meet());
    const auto size = static_cast<size_t>(epoch.size);
    std::vector<uint64_t> in(size);
    while (step_ < steps_) {
      uint64_t own = 0;   // of our lanes, whose sum over all members is the same for any number
      for (uint64_t lane = static_cast<uint64_t>(epoch.rank); lane < kLanes; lane += size) {
        own += Mix(step_, lane);
      }
      std::vector<NcclPiece> sent, received;
      for (int peer = 0; peer < epoch.size; ++peer) {
        if (peer == epoch.rank) continue;
        sent.push_back({&own, sizeof(own), peer});
        received.push_back({&in[static_cast<size_t>(peer)], sizeof(uint64_t), peer});
      }
      in[static_cast<size_t>(epoch.rank)] = own;
      const Status exchanged = Exchange(link, sent, received, broken);
      if (!exchanged.ok()) {
        link.Abort();   // before `own` and `in` are gone
        KEEL_CHECK(link.AwaitGone(kEndLimit), link.StateText());
        return exchanged;
      }
      uint64_t sum = 0;
      for (const uint64_t value : in) sum += value;
      state_ = Mix(state_, sum);
      ++step_;
    }
    return Ok();
  }

  Status Exchange(Communicator& link, const std::vector<NcclPiece>& sent,
                  const std::vector<NcclPiece>& received, const std::atomic<bool>& broken) {
    KEEL_TRY(link.Exchange(sent, received, stream_));
    while (cudaStreamQuery(stream_) != cudaSuccess) {
      KEEL_TRY(link.status());
      if (broken) break;
      std::this_thread::yield();
    }
    return broken ? Error{Code::kCancelled, "broken"} : link.status();
  }

  const int socket_;
  const uint64_t steps_;
  cudaStream_t stream_ = nullptr;
  uint64_t step_ = 0, state_ = 1;
};

// --- Their parent ---

class Family {
 public:
  Family(int size, uint64_t steps) : steps_(steps), members_(static_cast<size_t>(size)) {}
  ~Family() {
    for (const One& one : members_) {
      if (one.pid == 0) continue;
      kill(one.pid, SIGKILL);
      waitpid(one.pid, nullptr, 0);
      close(one.socket);
    }
  }

  // Until all have computed all. Their state, and how many have died.
  std::pair<uint64_t, int> Run() {
    Bear();
    BeginEpoch();
    while (!AllAre(Message::kFinished)) {
      if (!Listen()) break;
      if (is_broken_ && AllAre(Message::kParked)) BeginEpoch();
    }
    return {best_.state, deaths_};
  }

 private:
  struct One {
    pid_t pid = 0;
    int socket = -1;
    Message::Kind is = Message::kParked;   // kEpoch: in it
  };

  void Bear() {
    for (One& one : members_) {
      if (one.pid != 0) continue;
      int ends[2];
      KEEL_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "");
      one = {fork(), ends[0], Message::kParked};
      if (one.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (const One& other : members_) {
          if (other.socket >= 0) close(other.socket);
        }
        Member(ends[1], steps_).Run();
        _exit(0);
      }
      close(ends[1]);
    }
  }

  bool AllAre(Message::Kind kind) const {
    for (const One& one : members_) {
      if (one.is != kind) return false;
    }
    return true;
  }

  // The first one is asked for an id; the others are told once it is there.
  void BeginEpoch() {
    is_broken_ = false;
    Message epoch = best_;
    epoch.kind = Message::kEpoch;
    epoch.has_id = false;
    epoch.rank = 0;
    epoch.size = static_cast<int>(members_.size());
    members_[0].is = Message::kEpoch;
    Tell(members_[0].socket, epoch);
  }

  void OnId(Message epoch) {
    epoch.kind = Message::kEpoch;
    epoch.has_id = true;
    epoch.size = static_cast<int>(members_.size());
    epoch.step = best_.step;
    epoch.state = best_.state;
    for (size_t i = 1; i < members_.size(); ++i) {
      epoch.rank = static_cast<int>(i);
      members_[i].is = Message::kEpoch;
      Tell(members_[i].socket, epoch);
    }
  }

  // False: somebody hangs, or ends as nobody should.
  bool Listen() {
    std::vector<pollfd> polled;
    for (const One& one : members_) polled.push_back({one.socket, POLLIN, 0});
    if (poll(polled.data(), polled.size(), kHangMs) <= 0) {
      ADD_FAILURE() << "nothing happens any more, after " << deaths_ << " deaths";
      return false;
    }
    for (size_t i = 0; i < members_.size(); ++i) {
      if (polled[i].revents == 0) continue;
      Message message;
      if (!Hear(members_[i].socket, &message)) {
        if (!OnDeath(members_[i])) return false;
      } else if (message.kind == Message::kId) {
        if (!is_broken_) OnId(message);
      } else {
        OnProgress(members_[i], message);
      }
    }
    return true;
  }

  bool OnDeath(One& one) {
    int status = 0;
    waitpid(one.pid, &status, 0);
    close(one.socket);
    one = {};
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
      ADD_FAILURE() << "a survivor ended: " << status;
      return false;
    }
    ++deaths_;
    is_broken_ = true;
    Bear();
    for (One& other : members_) {
      if (other.is == Message::kEpoch) Tell(other.socket, {.kind = Message::kBreak});
      // It has all there is, and takes part again.
      if (other.is == Message::kFinished) other.is = Message::kParked;
    }
    return true;
  }

  void OnProgress(One& one, const Message& message) {
    one.is = message.kind;
    if (message.kind == Message::kFinished && is_broken_) one.is = Message::kParked;
    if (message.kind == Message::kParked && !is_broken_) {
      is_broken_ = true;   // it knows more than we do
      for (One& other : members_) {
        if (other.is == Message::kEpoch) Tell(other.socket, {.kind = Message::kBreak});
      }
    }
    if (message.step == best_.step) {
      EXPECT_EQ(message.state, best_.state) << message.step;
    }
    if (message.step > best_.step) best_ = message;
  }

  const uint64_t steps_;
  std::vector<One> members_;
  Message best_;
  bool is_broken_ = false;
  int deaths_ = 0;
};

int Amount(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// KEEL_LINK_KILLS=10000 for more of them.
TEST(LinkKills, NobodyElseEndsAndTheBitsAreTheSame) {
  const int wanted = Amount("KEEL_LINK_KILLS", 100);
  setenv("KEEL_STANDIN_SLOW_US", "500", 1);
  int died = 0, rounds = 0;
  for (; died < wanted && !HasFailure(); ++rounds) {
    const int size = 2 + rounds % 4;
    constexpr uint64_t kSteps = 60;
    unsetenv("KEEL_STANDIN_KILL");
    const auto [expected, nobody] = Family(1, kSteps).Run();
    ASSERT_EQ(nobody, 0);
    setenv("KEEL_STANDIN_KILL", rounds % 2 == 0 ? "300" : "1500", 1);
    const auto [state, deaths] = Family(size, kSteps).Run();
    EXPECT_EQ(state, expected) << size << " members, " << deaths << " deaths";
    died += deaths;
  }
  std::printf("%d deaths in %d rounds\n", died, rounds);
}

}  // namespace
}  // namespace keel
