// JobStory: which events a job has, each once, and what answer each gets.
#include "elastic/report/job_story.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

EpochRecord Epoch(int64_t number) {
  EpochRecord epoch;
  epoch.number = number;
  epoch.hosts.resize(1);
  epoch.workers.resize(3);
  return epoch;
}

BreakRecord Break(int64_t epoch, BreakCause cause, const std::string& reason) {
  BreakRecord record;
  record.epoch = epoch;
  record.cause = cause;
  record.reason = reason;
  return record;
}

// A wish to one host may become the whole job's; who asks again wants nothing new.
TEST(JobStory, AStopIsToldOnce) {
  JobStory story("job", 0);
  story.OnEpoch(Epoch(1), 1);
  story.OnStop("SIGINT to the launcher on n1", 2);
  story.OnStop("SIGINT to the launcher on n1", 3);
  story.OnJobStops("n1 (slot 0) leaves (SIGINT), and the store with it", 4);
  story.OnEnd(75, "stopped", 5);
  ASSERT_EQ(story.summary().events.size(), 1U);
  EXPECT_EQ(story.summary().events[0].why, "SIGINT to the launcher on n1");
  JobStory other("job", 0);
  other.OnJobStops("n1 (slot 0) leaves (SIGINT), and the store with it", 4);
  EXPECT_EQ(other.summary().events.size(), 1U) << "of another host's, nothing else tells";
}

TEST(JobStory, ABreakIsToldWithWhatTheJobDidAboutIt) {
  JobStory story("job", 0);
  story.OnEpoch(Epoch(1), 1);
  story.OnBreak(Break(1, BreakCause::kHostLost, "n1 was last heard from 3 s ago"), 2);
  story.OnEpoch(Epoch(2), 3);
  story.OnEnd(0, "all finished", 4);
  ASSERT_EQ(story.summary().events.size(), 1U);
  const JobEvent& event = story.summary().events[0];
  EXPECT_EQ(event.what, "host-lost");
  EXPECT_EQ(event.epoch, 1);
  EXPECT_EQ(event.answer, "went on as epoch 2: 3 workers on 1 host");
  EXPECT_EQ(story.summary().epochs, 2);
}

// Each cost a restart, though only one of them broke the epoch.
TEST(JobStory, EachDeathInPlaceIsToldOnceWithTheSameAnswer) {
  JobStory story("job", 0);
  story.OnEpoch(Epoch(1), 1);
  story.OnDeath("rank 1 on n0 exited with 3", 2);
  story.OnDeath("rank 2 on n0 exited with 3", 2);
  story.OnBreak(Break(1, BreakCause::kDied, "rank 1 on n0 exited with 3"), 3);
  story.OnEpoch(Epoch(2), 4);
  story.OnDeath("seat 1 on n0 exited with 3", 5);
  story.OnDeath("seat 1 on n0 exited with 3", 6);   // its successor's
  story.OnEnd(1, "failed too often", 7);
  const auto& events = story.summary().events;
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].why, "rank 1 on n0 exited with 3");
  EXPECT_EQ(events[1].why, "rank 2 on n0 exited with 3");
  for (int i : {0, 1}) EXPECT_EQ(events[i].answer, "went on as epoch 2: 3 workers on 1 host");
  EXPECT_EQ(events[2].epoch, 2);
  EXPECT_EQ(events[2].answer, "the job ended: failed too often");
}

// A process with much memory ends long after its death was reported.
TEST(JobStory, ADeathIsToldOnceWhicheverComesFirst) {
  JobStory story("job", 0);
  story.OnEpoch(Epoch(1), 1);
  story.OnBreak(Break(1, BreakCause::kDied, "rank 1 on n0 killed by signal 11 (SIGSEGV)"), 2);
  story.OnDeath("rank 1 on n0 killed by signal 11 (SIGSEGV), core dumped", 3);
  story.OnDeath("rank 10 on n0 killed by signal 11 (SIGSEGV)", 3);
  EXPECT_EQ(story.summary().events.size(), 2U);
}

TEST(JobStory, TheSameDeathInALaterEpochIsAnother) {
  JobStory story("job", 0);
  for (int64_t epoch : {1, 2}) {
    story.OnEpoch(Epoch(epoch), epoch);
    story.OnBreak(Break(epoch, BreakCause::kDied, "rank 1 on n1 exited with 3"), epoch);
  }
  EXPECT_EQ(story.summary().events.size(), 2U);
}

}  // namespace
}  // namespace keel
