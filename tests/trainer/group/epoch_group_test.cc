// EpochGroup: building, breaking at any moment, and ending, on real Gloo.
#include "trainer/group/epoch_group.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/group/unused_gloo.h"

namespace keel {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Tag kTag = TagOf(TagKind::kTransfer, 1);

TEST(EpochGroup, MembersSendToEachOther) {
  GroupCrew crew;
  for (int size = 1; size <= 5; ++size) {
    crew.Run(size, [](EpochGroup& group) {
      EpochGroup::Batch batch(group);
      std::vector<at::Tensor> in;
      for (int peer = 0; peer < group.size(); ++peer) {
        in.push_back(at::full({3}, peer == group.rank() ? peer : -1, at::kLong));
        if (peer == group.rank()) continue;
        ASSERT_TRUE(batch.Receive(in.back(), peer, kTag).ok());
        ASSERT_TRUE(batch.Send(at::full({3}, group.rank(), at::kLong), peer, kTag).ok());
      }
      ASSERT_TRUE(batch.Wait().ok());
      for (int peer = 0; peer < group.size(); ++peer) {
        EXPECT_EQ(in[static_cast<size_t>(peer)][2].item<int64_t>(), peer);
      }
    });
  }
}

int ThreadsOfPolicy(int policy) {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  KEEL_CHECK(tasks != nullptr, "no /proc");
  while (const dirent* const task = readdir(tasks)) {
    const int thread = std::atoi(task->d_name);   // 0 for "." and ".."
    if (thread != 0 && sched_getscheduler(thread) == policy) ++count;
  }
  closedir(tasks);
  return count;
}

// Else it keeps a member that sends from going on for a time slice: see trainer/group/gloo_mesh.cc.
TEST(EpochGroup, GloosThreadsDoNotPreemptTheMembers) {
  if (sched_getscheduler(0) != SCHED_OTHER) GTEST_SKIP() << "somebody chose another policy";
  GroupCrew crew;
  std::latch built(2);
  std::latch seen(2);
  crew.Run(2, [&](EpochGroup&) {
    built.arrive_and_wait();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_GE(ThreadsOfPolicy(SCHED_BATCH), 2);
    seen.arrive_and_wait();
  });
}

TEST(EpochGroup, MessagesOfOneTagKeepTheirOrder) {
  GroupCrew crew;
  crew.Run(2, [](EpochGroup& group) {
    constexpr int kCount = 200;
    EpochGroup::Batch batch(group);
    std::vector<at::Tensor> in;
    for (int i = 0; i < kCount; ++i) {
      in.push_back(at::empty({1}, at::kLong));
      ASSERT_TRUE(batch.Receive(in.back(), 1 - group.rank(), kTag).ok());
      ASSERT_TRUE(batch.Send(at::full({1}, i, at::kLong), 1 - group.rank(), kTag).ok());
    }
    ASSERT_TRUE(batch.Wait().ok());
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(in[static_cast<size_t>(i)].item<int64_t>(), i);
  });
}

TEST(EpochGroup, AbortEndsAWaitWithItsReason) {
  GroupCrew crew;
  std::latch done(2);   // a group that has ended is missed by the other one
  crew.Run(2, [&](EpochGroup& group) {
    std::thread breaker;
    {
      EpochGroup::Batch batch(group);
      const at::Tensor in = at::empty({1 << 20});
      EXPECT_TRUE(batch.Receive(in, 1 - group.rank(), kTag).ok());
      breaker = std::thread([&] { group.Abort("epoch 7 is over"); });
      const Status waited = batch.Wait();
      EXPECT_EQ(waited.error().code, Code::kCancelled);
      EXPECT_EQ(waited.error().message, "epoch 7 is over");
    }
    breaker.join();
    EpochGroup::Batch later(group);
    EXPECT_FALSE(later.Send(at::ones({1}), 1 - group.rank(), kTag).ok());
    EXPECT_EQ(later.Wait().error().message, "epoch 7 is over");
    group.Abort("another reason");
    EXPECT_EQ(group.status().error().message, "epoch 7 is over");
    done.arrive_and_wait();
  });
}

// Where notes take the place of messages, no connection ends a wait.
TEST(EpochGroup, AWaitForANoteEndsWithItsReason) {
  GroupCrew crew;
  std::latch done(2);
  crew.Run(2, [&](EpochGroup& group) {
    ASSERT_TRUE(group.ReadsMutually(1 - group.rank(), kReadBytesMin));
    std::thread breaker([&] { group.Abort("epoch 7 is over"); });
    const Status waited = group.Await(1 - group.rank(), Note::kSummed, 0);
    breaker.join();
    EXPECT_THAT(waited.error().message,
                testing::AnyOf("epoch 7 is over", HasSubstr("it has left the group")));
    EXPECT_FALSE(group.Tell(Note::kSummed, 0).ok());
    done.arrive_and_wait();
  });
}

TEST(EpochGroup, WhoseNoteIsNotToBeHadIsNamed) {
  GroupCrew crew;
  std::latch done(2);
  crew.Run(2, [&](EpochGroup& group) {
    if (group.rank() == 0) {
      group.LimitTo(std::chrono::milliseconds(30));
      const Status waited = group.Await(1, Note::kOffered, 3);
      EXPECT_EQ(waited.error().code, Code::kTimeout);
      EXPECT_THAT(waited.error().message, HasSubstr("rank 1: nothing new for "));
    } else {   // waits for one that has given up
      const Status waited = group.Await(0, Note::kOffered, 3);
      EXPECT_EQ(waited.error().code, Code::kPeerLost);
      EXPECT_THAT(waited.error().message, HasSubstr("rank 0: it has left the group"));
    }
    done.arrive_and_wait();
  });
}

// All has been taken: who still has to look at that note needs no more than it.
TEST(EpochGroup, WhoLeavesInOrderLeavesItsNotes) {
  GroupCrew crew;
  const std::string prefix = crew.NewPrefix();
  std::latch left(2);
  GroupCrew::OnThreads(2, [&](int rank) {
    auto group = EpochGroup::Build(crew.SpecOf(rank, 2, prefix), CancelToken::Never());
    ASSERT_TRUE(group.ok()) << group.error().message;
    const uint32_t number = (*group)->NextReduction();
    ASSERT_TRUE((*group)->Tell(Note::kTaken, number).ok());
    if (rank == 0) {
      EXPECT_TRUE((*group)->AwaitReaders().ok());
      group->reset();
    }
    left.arrive_and_wait();
    if (rank == 1) {
      EXPECT_TRUE((*group)->Await(0, Note::kTaken, number).ok());
    }
  });
}

TEST(EpochGroup, AbortBeforeTheWaitIsNotLost) {
  GroupCrew crew;
  std::latch done(2);
  crew.Run(2, [&](EpochGroup& group) {
    EpochGroup::Batch batch(group);
    const at::Tensor in = at::empty({4});
    EXPECT_TRUE(batch.Receive(in, 1 - group.rank(), kTag).ok());
    group.Abort("early");
    EXPECT_EQ(batch.Wait().error().message, "early");
    done.arrive_and_wait();
  });
}

// A message of which the first bytes have moved is the one that a broken connection does not end.
TEST(EpochGroup, AbortEndsAHalfReceivedMessage) {
  GroupCrew crew;
  std::latch posted(2);
  crew.Run(2, [&](EpochGroup& group) {
    const at::Tensor big = at::zeros({16 << 20}, at::kByte);
    EpochGroup::Batch batch(group);
    if (group.rank() == 0) {
      ASSERT_TRUE(batch.Send(big, 1, kTag).ok());
    } else {
      ASSERT_TRUE(batch.Receive(big, 0, kTag).ok());
    }
    posted.arrive_and_wait();
    group.Abort("in the middle");
    EXPECT_EQ(batch.Wait().error().message, "in the middle");
  });
  // The receiver's buffer is gone while its message still comes in; the teardown must end all the
  // same.
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(30)));
}

TEST(EpochGroup, AMemberThatEndsItsGroupIsMissedByTheOthers) {
  GroupCrew crew;
  crew.Run(3, [](EpochGroup& group) {
    if (group.rank() == 2) return;  // its group ends here
    EpochGroup::Batch batch(group);
    ASSERT_TRUE(batch.Receive(at::empty({4}), 2, kTag).ok() || !group.status().ok());
    const Status waited = batch.Wait();
    ASSERT_FALSE(waited.ok());
    EXPECT_EQ(waited.error().code, Code::kPeerLost) << waited.error().message;
    EXPECT_THAT(waited.error().message, HasSubstr("rank "));
  });
}

TEST(EpochGroup, AnOperationThatIsLateTimesOutAndNamesThePeer) {
  GroupCrew crew;
  const std::string prefix = crew.NewPrefix();
  std::latch done(2);
  GroupCrew::OnThreads(2, [&](int rank) {
    EpochGroup::Spec spec = crew.SpecOf(rank, 2, prefix);
    spec.members = {"node1/0", "node2/0"};
    auto group = EpochGroup::Build(spec, CancelToken::Never());
    KEEL_CHECK(group.ok(), group.error().message);
    (*group)->LimitTo(std::chrono::milliseconds(300));   // building has operations, too
    if (rank == 0) {
      EpochGroup::Batch batch(**group);
      EXPECT_TRUE(batch.Receive(at::empty({4}), 1, kTag).ok());
      const Status waited = batch.Wait();
      EXPECT_EQ(waited.error().code, Code::kTimeout) << waited.error().message;
      EXPECT_THAT(waited.error().message, HasSubstr("rank 1 (node2/0)"));
    }
    done.arrive_and_wait();
  });
}

TEST(EpochGroup, ABatchThatIsDroppedAbortsTheGroup) {
  GroupCrew crew;
  std::latch done(2);
  crew.Run(2, [&](EpochGroup& group) {
    {
      EpochGroup::Batch batch(group);
      EXPECT_TRUE(batch.Receive(at::empty({4}), 1 - group.rank(), kTag).ok());
    }
    EXPECT_EQ(group.status().error().code, Code::kCancelled);
    done.arrive_and_wait();
  });
}

TEST(EpochGroup, BuildingWaitsForTheOthersUntilItsLimitAndNamesThem) {
  GroupCrew crew;
  EpochGroup::Spec spec = crew.SpecOf(0, 3, crew.NewPrefix());
  spec.build_limit = std::chrono::seconds(2);
  spec.members = {"a/0", "b/0", "c/0"};
  const auto group = EpochGroup::Build(spec, CancelToken::Never());
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.error().code, Code::kTimeout);
  EXPECT_THAT(group.error().message, HasSubstr("for rank 1 (b/0)"));
  spec = crew.SpecOf(1, 3, crew.NewPrefix());
  spec.build_limit = std::chrono::seconds(2);
  spec.members = {"a/0", "b/0", "c/0"};
  EXPECT_THAT(EpochGroup::Build(spec, CancelToken::Never()).error().message,
              HasSubstr("for the list of all members, which rank 0 (a/0) makes once all have "
                        "come"));
}

TEST(EpochGroup, ABreakEndsBuildingWhileTheOthersAreMissing) {
  GroupCrew crew;
  for (int present = 1; present <= 2; ++present) {
    const std::string prefix = crew.NewPrefix();
    GroupCrew::OnThreads(present, [&](int rank) {
      const CancelToken broken;
      std::thread breaker([&] {
        RealClock().SleepFor(std::chrono::milliseconds(5 * rank));
        broken.Cancel();
      });
      const auto group = EpochGroup::Build(crew.SpecOf(rank, 3, prefix), broken);
      breaker.join();
      ASSERT_FALSE(group.ok());
      EXPECT_EQ(group.error().code, Code::kCancelled) << group.error().message;
    });
  }
}

// One member has written its card and is gone: the others, which have the book, wait for a
// connection that never comes (of the lower address, it is they who wait to be connected to), or
// for a word over one that is there.
TEST(EpochGroup, ABreakEndsTheWaitForAMemberThatDiedAfterAllHadMet) {
  GroupCrew crew;
  std::mutex mutex;
  std::string log;
  LogToCallback([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += line;
  });
  for (const char* const address : {"127.0.0.2", "127.0.0.1"}) {
    const std::string prefix = crew.NewPrefix();
    std::latch met(4), ended(4);
    GroupCrew::OnThreads(4, [&](int rank) {
      const EpochGroup::Spec spec = crew.SpecOf(rank, 4, prefix);
      if (rank == 3) {
        BreakableStore store(c10::make_intrusive<c10d::PrefixStore>(prefix, spec.store),
                             [] { return false; }, 4);
        const UnusedGloo unused(address, rank, 4);
        (void)ExchangeCards(store, rank, 4, unused.card(), [](int) {});
        met.arrive_and_wait();
        ended.arrive_and_wait();
        return;
      }
      const CancelToken broken;
      std::thread breaker([&, rank] {
        met.arrive_and_wait();
        RealClock().SleepFor(std::chrono::milliseconds(20 * rank));
        broken.Cancel();
      });
      const auto group = EpochGroup::Build(spec, broken);
      breaker.join();
      EXPECT_FALSE(group.ok());
      ended.arrive_and_wait();
    });
  }
  LogToStderr();
  EXPECT_THAT(log, Not(HasSubstr("group-helper-left-behind")));
}

TEST(EpochGroup, LeavesOneKeyInTheStore) {
  GroupCrew crew;
  const auto plain = crew.SpecOf(0, 1, "").store;
  const int64_t keys = plain->getNumKeys();
  for (int size = 1; size <= 5; ++size) crew.Run(size, [](EpochGroup&) {});
  EXPECT_EQ(plain->getNumKeys(), keys + 4);
}

// Breaks that fall anywhere into the building; whoever got a group uses it, until it fails.
TEST(EpochGroup, BreaksAtRandomMomentsEndBuildingEverywhere) {
  GroupCrew crew;
  Random random(20261121);
  for (int round = 0; round < 40; ++round) {
    const std::string prefix = crew.NewPrefix();
    const auto delay = std::chrono::microseconds(random.Uniform(12000));
    const CancelToken broken;
    std::thread breaker([&] {
      RealClock().SleepFor(delay);
      broken.Cancel();
    });
    GroupCrew::OnThreads(4, [&](int rank) {
      const auto group = EpochGroup::Build(crew.SpecOf(rank, 4, prefix), broken);
      if (!group.ok()) return;
      EpochGroup::Batch batch(**group);
      (void)batch.Receive(at::empty({4}), (rank + 1) % 4, kTag);
      (*group)->Abort("enough");
      EXPECT_FALSE(batch.Wait().ok());
    });
    breaker.join();
  }
  EXPECT_TRUE(EpochGroup::AwaitTeardown(std::chrono::seconds(30)));
}

TEST(EpochGroup, WrongRanksAreRefused) {
  GroupCrew crew;
  EpochGroup::Spec spec = crew.SpecOf(0, 1, crew.NewPrefix());
  spec.rank = 1;
  EXPECT_EQ(EpochGroup::Build(spec, CancelToken::Never()).error().code, Code::kInvalid);
}

// Connecting is refused before it has begun: there is no route, or, as here, the address is of
// another kind than ours. That member is of no use, but ours keep what they have: the group breaks,
// and no program has failed.
TEST(EpochGroup, AMemberToWhomNoWayLeadsIsLostAndNotOurMistake) {
  GroupCrew crew;
  const std::string prefix = crew.NewPrefix();
  GroupCrew::OnThreads(2, [&](int rank) {
    const EpochGroup::Spec spec = crew.SpecOf(rank, 2, prefix);
    if (rank == 0) {
      const auto group = EpochGroup::Build(spec, CancelToken::Never());
      ASSERT_FALSE(group.ok());
      EXPECT_EQ(group.error().code, Code::kPeerLost) << group.error().message;
      EXPECT_THAT(group.error().message, HasSubstr("connecting to rank 1"));
      return;
    }
    const UnusedGloo unused("127.0.0.1", rank, 2);
    MemberCard card = unused.card();
    const std::vector<uint8_t> here = {127, 0, 0, 1};
    const auto found = std::search(card.address.begin(), card.address.end(), here.begin(),
                                   here.end());
    ASSERT_NE(found, card.address.end());
    *(found - offsetof(sockaddr_in, sin_addr)) = AF_INET6;
    BreakableStore store(c10::make_intrusive<c10d::PrefixStore>(prefix, spec.store),
                         [] { return false; }, 2);
    (void)ExchangeCards(store, rank, 2, card, [](int) {});
  });
}

}  // namespace
}  // namespace keel
