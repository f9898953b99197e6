// Links over NCCL, with a stand-in for NCCL and the GPU: forming, exchanging, breaking in every
// call, revoking, aborting, and forming again.
#include "trainer/group/nccl/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>

#include "tests/standin/standin.h"

namespace keel {
namespace {

using testing::HasSubstr;

constexpr Duration kHangLimit = std::chrono::seconds(60);
constexpr size_t kBytes = 100000;

// One member: its link, the thread that owns it, and the stream that it exchanges on.
class Member {
 public:
  Member(const std::string& id, int rank, int size)
      : link_(std::make_shared<Communicator>(NcclLinkSpec{id, rank, size, 0})),
        owner_([link = link_] { link->Own(); }), rank_(rank), size_(size) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~Member() {
    link_->Abort();
    EXPECT_TRUE(link_->AwaitGone(kHangLimit)) << link_->StateText();
    owner_.join();
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  Member(const Member&) = delete;

  Communicator& link() { return *link_; }

  Status Form(const std::function<bool()>& give_up = [] { return false; }) {
    KEEL_TRY(link_->AwaitReady(give_up));
    return link_->Meet();
  }
  // Sends its rank to everybody, and looks at what came once all is there.
  Status Exchange() {
    const std::vector<char> out(kBytes, static_cast<char>(rank_));
    std::vector<std::vector<char>> in(static_cast<size_t>(size_), std::vector<char>(kBytes, 'x'));
    std::vector<NcclPiece> sent, received;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      sent.push_back({const_cast<char*>(out.data()), kBytes, peer});
      received.push_back({in[static_cast<size_t>(peer)].data(), kBytes, peer});
    }
    Status done = link_->Exchange(sent, received, stream_);
    if (done.ok()) done = Await();
    if (!done.ok()) {
      // The memory is in use until the link has stopped what is in flight.
      link_->Abort();
      EXPECT_TRUE(link_->AwaitGone(kHangLimit)) << link_->StateText();
      return done;
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      EXPECT_EQ(in[static_cast<size_t>(peer)], std::vector<char>(kBytes, static_cast<char>(peer)));
    }
    return Ok();
  }
  Status Await() {
    const TimePoint by = RealClock().Monotonic() + kHangLimit;
    while (cudaStreamQuery(stream_) != cudaSuccess) {
      KEEL_TRY(link_->status());
      if (aborted_) return Error{Code::kCancelled, "aborted"};
      if (RealClock().Monotonic() > by) return Error{Code::kTimeout, "nothing came"};
      RealClock().SleepFor(std::chrono::microseconds(100));
    }
    // What was in flight when it was aborted has ended, too, with nothing to show.
    return aborted_ ? Error{Code::kCancelled, "aborted"} : link_->status();
  }
  void Abort() {
    aborted_ = true;
    link_->Abort();
  }
  cudaStream_t stream() { return stream_; }

 private:
  const std::shared_ptr<Communicator> link_;
  std::thread owner_;
  const int rank_, size_;
  cudaStream_t stream_ = nullptr;
  std::atomic<bool> aborted_{false};   // by the test
};

using Members = std::vector<std::unique_ptr<Member>>;

Members Begin(int size, int there) {
  const Result<std::string> id = NewNcclId();
  KEEL_CHECK(id.ok(), id.error().message);
  Members members;
  for (int rank = 0; rank < there; ++rank) {
    members.push_back(std::make_unique<Member>(*id, rank, size));
  }
  return members;
}
Members Begin(int size) { return Begin(size, size); }

// Each member on a thread of its own.
std::vector<Status> OnAll(Members& members, const std::function<Status(Member& member)>& body) {
  std::vector<Status> ends(members.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i] { ends[i] = body(*members[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

void ExpectOk(const std::vector<Status>& ends) {
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end.error().message;
}

class Links : public testing::Test {
 protected:
  ~Links() override {
    standin::OnEachCall(nullptr);
    standin::LetAbortsHang(false);
    standin::LoseTheGpu(0);
    EXPECT_EQ(standin::Communicators(), 0);
  }
};

Status FormAndExchange(Member& member) {
  KEEL_TRY(member.Form());
  for (int round = 0; round < 3; ++round) KEEL_TRY(member.Exchange());
  return Ok();
}

TEST_F(Links, FormExchangeAndEndInOrder) {
  for (int size = 1; size <= 5; ++size) {
    Members members = Begin(size);
    ExpectOk(OnAll(members, [](Member& member) -> Status {
      KEEL_TRY(FormAndExchange(member));
      member.link().Leave();
      EXPECT_TRUE(member.link().AwaitGone(kHangLimit));
      return Ok();
    }));
  }
}

TEST_F(Links, Add) {
  Members members = Begin(3);
  ExpectOk(OnAll(members, [](Member& member) -> Status {
    KEEL_TRY(member.Form());
    std::vector<float> values(1000);
    std::iota(values.begin(), values.end(), 1.0f);
    KEEL_TRY(member.link().Sum(values.data(), values.size(), NcclType::kFloat32, member.stream()));
    KEEL_TRY(member.Await());
    EXPECT_EQ(values[9], 30.0f);
    return Ok();
  }));
}

// One member's link ends at the n-th call of NCCL's that anybody makes; the others hear of it a
// moment later, as from their launchers. All of it ends, and the same members form again.
TEST_F(Links, MayBeBrokenInEveryCall) {
  std::atomic<int> calls{0};
  standin::OnEachCall([&](const std::string&) { ++calls; });
  {
    Members members = Begin(3);
    ExpectOk(OnAll(members, FormAndExchange));
  }
  const int all = calls;
  ASSERT_GT(all, 30);
  for (int at = 1; at < all; ++at) {
    Members members = Begin(3);
    calls = 0;
    standin::OnEachCall([&](const std::string&) {
      if (++calls == at) members[static_cast<size_t>(at % 3)]->Abort();
    });
    std::atomic<bool> over{false};
    std::thread launcher([&] {
      while (calls < at && !over) RealClock().SleepFor(std::chrono::microseconds(100));
      RealClock().SleepFor(std::chrono::microseconds(at % 7 * 100));
      for (const auto& member : members) member->Abort();
    });
    (void)OnAll(members, FormAndExchange);
    over = true;
    launcher.join();
    for (const auto& member : members) EXPECT_TRUE(member->link().AwaitGone(kHangLimit)) << at;
    standin::OnEachCall(nullptr);
    members.clear();
    if (at % 10 != 0) continue;
    Members again = Begin(3);
    ExpectOk(OnAll(again, FormAndExchange));
  }
}

// Nobody tells them.
TEST_F(Links, SeeThatAPeerIsGone) {
  Members members = Begin(3);
  ExpectOk(OnAll(members, FormAndExchange));
  members[1]->link().Abort();
  ASSERT_TRUE(members[1]->link().AwaitGone(kHangLimit));
  members.erase(members.begin() + 1);
  for (const Status& end : OnAll(members, [](Member& member) { return member.Exchange(); })) {
    ASSERT_FALSE(end.ok());
    EXPECT_EQ(end.error().code, Code::kPeerLost) << end.error().message;
  }
}

TEST_F(Links, ThatNobodyElseComesToEndAtOnce) {
  Members members = Begin(3, 2);
  std::atomic<int> asked{0};
  for (const Status& end : OnAll(members, [&](Member& member) {
         return member.Form([&] { return ++asked > 20; });
       })) {
    ASSERT_FALSE(end.ok());
    EXPECT_EQ(end.error().code, Code::kCancelled);
  }
  const TimePoint begun = RealClock().Monotonic();
  members.clear();
  EXPECT_LT(RealClock().Monotonic() - begun, kHangLimit);
}

TEST_F(Links, RefuseWhatComesAfterTheirEnd) {
  Members members = Begin(1);
  ExpectOk(OnAll(members, FormAndExchange));
  members[0]->link().Leave();
  const Status late = members[0]->link().Exchange({}, {}, members[0]->stream());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kCancelled);
}

TEST_F(Links, TellThatAnAbortHangs) {
  Members members = Begin(2);
  ExpectOk(OnAll(members, FormAndExchange));
  standin::LetAbortsHang(true);
  for (const auto& member : members) member->link().Abort();
  for (const auto& member : members) {
    EXPECT_FALSE(member->link().AwaitGone(std::chrono::milliseconds(50)));
  }
  const TimePoint by = RealClock().Monotonic() + kHangLimit;
  while (members[0]->link().StateText() != "aborting" && RealClock().Monotonic() < by) {
    RealClock().SleepFor(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(members[0]->link().StateText(), "aborting");
  standin::LetAbortsHang(false);
}

// Whether a peer is gone, too, or not.
TEST_F(Links, TellThatTheGpuIsLost) {
  Members members = Begin(2);
  ExpectOk(OnAll(members, FormAndExchange));
  standin::LoseTheGpu(cudaErrorIllegalAddress);
  members[1]->link().Abort();
  ASSERT_TRUE(members[1]->link().AwaitGone(kHangLimit));
  const Status end = members[0]->Exchange();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, Code::kNoDevice);
  EXPECT_THAT(end.error().message, HasSubstr("an illegal memory access"));
  standin::LoseTheGpu(0);
}

}  // namespace
}  // namespace keel
