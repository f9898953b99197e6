// What a group of workers saves and begins from: when nobody holds the state any more, and when the
// group breaks while the disk is slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "ckpt/catalog.h"
#include "ckpt/names.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/crew.h"
#include "tests/trainer/quiet_peer.h"
#include "tests/trainer/save/kept_member.h"

namespace keel {
namespace {

constexpr uint64_t kSavedStep = 1;

using Members = std::vector<std::unique_ptr<KeptMember>>;

Members MakeMembers(int count, Files& files) {
  Members members;
  for (int i = 0; i < count; ++i) members.push_back(std::make_unique<KeptMember>(files));
  return members;
}

class KeepTogether : public testing::Test {
 protected:
  // To the end of the job.
  void RunAll(const Members& members) {
    const std::string prefix = crew_.NewPrefix();
    const int size = static_cast<int>(members.size());
    GroupCrew::OnThreads(size, [&](int rank) {
      const KeptMember& member = *members[static_cast<size_t>(rank)];
      const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, size, prefix),
                                    CancelToken::Never(), QuietPeer(), member.keeping.get());
      EXPECT_OK(outcome);
      if (outcome.ok()) {
        EXPECT_EQ(outcome->end, EpochEnd::kFinished) << outcome->reason;
      }
    });
    for (const auto& member : members) EXPECT_EQ(member->Bits(), quiet_);
  }
  // One step, after which somebody is to join.
  void RunStep(const std::vector<const KeptMember*>& members, const std::vector<EpochEnd>& ends) {
    const std::string prefix = crew_.NewPrefix();
    const int size = static_cast<int>(members.size());
    GroupCrew::OnThreads(size, [&](int rank) {
      EpochCallbacks peer = QuietPeer();
      peer.wishes = [] { return EpochCallbacks::Wishes{.join = true}; };
      const KeptMember& member = *members[static_cast<size_t>(rank)];
      const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, size, prefix),
                                    CancelToken::Never(), peer, member.keeping.get());
      ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, ends[static_cast<size_t>(rank)]) << rank << outcome->reason;
    });
  }
  // As of a job that was stopped after its first step.
  void SaveFirstStep() {
    const KeptMember member(files_);
    EpochCallbacks peer = QuietPeer();
    peer.wishes = [] { return EpochCallbacks::Wishes{.stop = true}; };
    const auto outcome = RunEpoch(*member.state, crew_.SpecOf(0, 1, crew_.NewPrefix()),
                                  CancelToken::Never(), peer, member.keeping.get());
    ASSERT_OK(outcome);
    ASSERT_EQ(outcome->saved_step, kSavedStep);
  }

  MemoryFiles files_;
  GroupCrew crew_;
  const std::string quiet_ = QuietBits();
};

// Its source died with half of the state sent.
TEST_F(KeepTogether, ANewcomerBesideAReceiverResumesForBoth) {
  SaveFirstStep();
  for (const size_t spoiled : {0u, 1u}) {
    const Members members = MakeMembers(2, files_);
    members[spoiled]->state->BeginReceiving();
    RunAll(members);
    EXPECT_EQ(members[1 - spoiled]->resumed_at, spoiled == 0 ? kSavedStep : 3u)
        << "the second time, the job is at its end";
  }
}

TEST_F(KeepTogether, ReceiversWithoutASourceResume) {
  SaveFirstStep();
  const Members members = MakeMembers(3, files_);
  for (const auto& member : members) member->state->BeginReceiving();
  RunAll(members);
  EXPECT_EQ(members[0]->resumed_at, kSavedStep);
}

TEST_F(KeepTogether, WithoutACheckpointAReceiverBeginsAnewWithANewcomer) {
  const Members members = MakeMembers(2, files_);
  members[0]->state->BeginReceiving();
  RunAll(members);
}

// Their source died before anything was saved: it costs one worker, not all of them.
TEST_F(KeepTogether, OfReceiversWithoutASourceOrACheckpointOneEnds) {
  Members members = MakeMembers(3, files_);
  for (const auto& member : members) member->state->BeginReceiving();
  const std::string prefix = crew_.NewPrefix();
  GroupCrew::OnThreads(3, [&](int rank) {
    const KeptMember& member = *members[static_cast<size_t>(rank)];
    const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, 3, prefix),
                                  CancelToken::Never(), QuietPeer(), member.keeping.get());
    if (rank == 0) {
      ASSERT_FALSE(outcome.ok());
      EXPECT_THAT(outcome.error().message,
                  testing::HasSubstr("no worker that is left has the whole state"));
    } else {
      ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, EpochEnd::kBroken);
      EXPECT_THAT(outcome->reason, testing::HasSubstr("rank 0 ends, and is to begin anew"));
    }
  });
  members[0] = std::make_unique<KeptMember>(files_);
  RunAll(members);
}

// One noted a member of other numerics that was lost before it made a step; the other did not.
TEST_F(KeepTogether, MembersWhoseNotesOfOtherNumericsDifferCanSave) {
  const Members members = MakeMembers(2, files_);
  members[0]->state->NoteInexact();
  RunAll(members);   // which saves at its end
  EXPECT_EQ(members[1]->state->inexact_since(), 0);
}

// As where each host's path leads to a disk of its own.
TEST_F(KeepTogether, WhoSavesInAnotherDirectoryIsRefusedAtOnce) {
  MemoryFiles elsewhere;
  Members members;
  members.push_back(std::make_unique<KeptMember>(files_));
  members.push_back(std::make_unique<KeptMember>(elsewhere));
  const std::string prefix = crew_.NewPrefix();
  GroupCrew::OnThreads(2, [&](int rank) {
    const KeptMember& member = *members[static_cast<size_t>(rank)];
    const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, 2, prefix),
                                  CancelToken::Never(), QuietPeer(), member.keeping.get());
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->end, rank == 0 ? EpochEnd::kBroken : EpochEnd::kRefused);
    if (rank == 1) {
      EXPECT_THAT(outcome->reason, testing::HasSubstr("/c of this host is not the"));
    }
  });
  members.pop_back();
  RunAll(members);
}

TEST_F(KeepTogether, ANewcomerThatSavesInAnotherDirectoryIsRefused) {
  MemoryFiles elsewhere;
  const KeptMember first(files_), second(files_), stranger(elsewhere);
  RunStep({&first}, {EpochEnd::kBoundary});
  RunStep({&first, &stranger}, {EpochEnd::kBroken, EpochEnd::kRefused});
  RunStep({&first, &second}, {EpochEnd::kBoundary, EpochEnd::kBoundary});
}

// Somebody has tidied up there since; no save has noticed it yet.
TEST_F(KeepTogether, ANewcomerIsNotRefusedWhereTheFirstOnesMarkWasRemoved) {
  const KeptMember first(files_), second(files_), stray(files_);
  RunStep({&first}, {EpochEnd::kBoundary});
  ASSERT_OK(files_.Remove("/c/" + JobMarkName(first.saver->directory().id())));
  RunStep({&first, &second}, {EpochEnd::kBoundary, EpochEnd::kBoundary});
  EXPECT_EQ(stray.saver->directory().Hold(Duration(0)).error().code, Code::kExists);
}

// It was there when the newcomer heard of it, and has left in order before that one looked.
TEST_F(KeepTogether, WhoLooksTooLateForTheFirstOnesMarkIsNotRefused) {
  FaultyFiles slow(files_);
  std::function<void(const std::string&)> break_first;
  std::promise<void> gone;
  slow.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kStat, .path_part = ".mark", .act = [&] {
               break_first("a member was lost");
               gone.get_future().wait();
             }});
  Members members;
  members.push_back(std::make_unique<KeptMember>(files_));
  members.push_back(std::make_unique<KeptMember>(slow));
  const std::string prefix = crew_.NewPrefix();
  GroupCrew::OnThreads(2, [&](int rank) {
    EpochCallbacks peer = QuietPeer();
    if (rank == 0) {
      peer.watch = [&](auto tell) {
        break_first = tell;
        return std::shared_ptr<void>();
      };
    }
    const auto at = static_cast<size_t>(rank);
    const auto outcome = RunEpoch(*members[at]->state, crew_.SpecOf(rank, 2, prefix),
                                  CancelToken::Never(), peer, members[at]->keeping.get());
    if (rank == 0) {
      members[at].reset();
      gone.set_value();
    }
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->end, EpochEnd::kBroken) << rank << outcome->reason;
  });
  EXPECT_EQ(slow.strikes(), 1);
}

// Shares of different codecs make no checkpoint; a save that only some begin never ends.
TEST_F(KeepTogether, AllSaveWhenAndAsTheFirstRankSays) {
  Members members;
  members.push_back(std::make_unique<KeptMember>(files_, SaveTerms{1, Codec::kNone}));
  members.push_back(std::make_unique<KeptMember>(files_, SaveTerms{2, Codec::kZstd}));
  RunAll(members);
  members.clear();
  ASSERT_OK_AND_ASSIGN(const auto newest, NewestComplete(files_, "/c"));
  EXPECT_EQ(newest.step, 3u);
}

// All were told to stop; one is lost while another one's disk takes its time. Nobody may wait for
// that disk: who does not park in time is killed, and its memory with it.
TEST_F(KeepTogether, ABreakIsHeardWhileTheDiskIsWaitedFor) {
  FaultyFiles slow(files_);
  std::promise<void> released;
  std::vector<std::function<void(const std::string&)>> breaks;
  std::mutex mutex;
  slow.Plan({.kind = Fault::Kind::kAct, .op = FileOp::kSync, .path_part = "-shard-", .act = [&] {
               {
                 const std::lock_guard lock(mutex);
                 for (const auto& tell : breaks) tell("a member was lost");
               }
               released.get_future().wait();
             }});
  Members members = MakeMembers(2, slow);
  const std::string prefix = crew_.NewPrefix();
  GroupCrew::OnThreads(2, [&](int rank) {
    EpochCallbacks peer = QuietPeer();
    peer.wishes = [] { return EpochCallbacks::Wishes{.stop = true}; };
    peer.watch = [&](auto tell) {
      const std::lock_guard lock(mutex);
      breaks.push_back(tell);
      return std::shared_ptr<void>();
    };
    const KeptMember& member = *members[static_cast<size_t>(rank)];
    const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, 2, prefix),
                                  CancelToken::Never(), peer, member.keeping.get());
    EXPECT_TRUE(outcome.ok() && outcome->end == EpochEnd::kBroken);
  });
  EXPECT_EQ(slow.strikes(), 1) << "and it has not been released";
  released.set_value();
  EXPECT_OK(members[1]->saver->SaveAlone({}));
  EXPECT_OK(members[0]->saver->SaveAlone({})) << "the same";
  members.clear();   // and with them their hold of the directory

  const KeptMember resumed(files_);
  ASSERT_OK(resumed.RunAlone());
  EXPECT_EQ(resumed.resumed_at, kSavedStep);
  EXPECT_EQ(resumed.Bits(), quiet_);
}

// Two members that know how fast they save, and one of which must be gone at once.
class WithoutTime : public KeepTogether {
 protected:
  // `known`: they have saved before, so that nothing fits any more. `save_at`: the vote that asks
  // for a save beside training; `stop_at`: the vote that stops. Whether step `saved` was saved.
  void Run(bool known, int save_at, int stop_at, std::optional<uint64_t> saved) {
    const Members members = MakeMembers(2, files_);
    if (known) {
      EXPECT_OK(members[1]->saver->SaveAlone({}));   // of step 0
    }
    const std::string prefix = crew_.NewPrefix();
    GroupCrew::OnThreads(2, [&](int rank) {
      EpochCallbacks peer = QuietPeer();
      peer.wishes = [&, votes = 0]() mutable {
        EpochCallbacks::Wishes wishes{.stop = votes == stop_at, .save = votes == save_at};
        if (wishes.stop && rank == 1) wishes.left = Duration(0);
        ++votes;
        return wishes;
      };
      const KeptMember& member = *members[static_cast<size_t>(rank)];
      const auto outcome = RunEpoch(*member.state, crew_.SpecOf(rank, 2, prefix),
                                    CancelToken::Never(), peer, member.keeping.get());
      ASSERT_OK(outcome);
      EXPECT_EQ(outcome->end, EpochEnd::kStopped) << outcome->reason;
      EXPECT_EQ(outcome->saved_step, saved);
      EXPECT_EQ(member.state->step(), static_cast<uint64_t>(stop_at) + 1);
    });
  }
  std::vector<uint64_t> CompleteSteps() {
    std::vector<uint64_t> steps;
    const auto entries = ListSteps(files_, "/c");
    EXPECT_OK(entries);
    for (const StepEntry& entry : *entries) {
      EXPECT_EQ(entry.state, StepState::kComplete) << entry.dir << ": " << entry.reason;
      steps.push_back(entry.step);
    }
    return steps;
  }
};

TEST_F(WithoutTime, NothingIsBegunThatCannotBeCommitted) {
  Run(true, -1, 0, std::nullopt);
  EXPECT_EQ(CompleteSteps(), std::vector<uint64_t>{0});
}

TEST_F(WithoutTime, TheSaveUnderWayIsFinishedInstead) {
  Run(true, 0, 1, std::nullopt);
  EXPECT_EQ(CompleteSteps(), (std::vector<uint64_t>{0, 1}));
  const KeptMember resumed(files_);
  ASSERT_OK(resumed.RunAlone());
  EXPECT_EQ(resumed.resumed_at, 1U);
  EXPECT_EQ(resumed.Bits(), quiet_);
}

TEST_F(WithoutTime, WhereNobodyKnowsHowLongItTakesItIsTried) {
  Run(false, -1, 0, 1);
  EXPECT_EQ(CompleteSteps(), std::vector<uint64_t>{1});
}

}  // namespace
}  // namespace keel
