// What became of the time of seats: every moment is in one part, and no part is more than it was.
#include "elastic/report/time_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TimePoint At(Duration since) { return TimePoint{} + since; }

SeatRecord SeatOf(SeatState state, const std::string& worker = "w1") {
  SeatRecord seat;
  seat.state = state;
  seat.worker = worker;
  return seat;
}

FiguresMessage Told(Duration forward, Duration vote, Duration evaluating = 0s) {
  FiguresMessage figures;
  figures.parts = {{"forward", forward.count()}, {"vote", vote.count()}};
  figures.evaluating_ns = evaluating.count();
  return figures;
}

TEST(TimeLedger, EachMomentOfASeatIsInOnePart) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kStarting)}, At(1s));
  ledger.OnSeats({SeatOf(SeatState::kReady)}, At(3s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(6s));
  ledger.OnFigures(0, Told(7s, 2s, 1s));
  ledger.OnSeats({SeatOf(SeatState::kParked)}, At(20s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(25s));
  ledger.OnSeats({SeatOf(SeatState::kStopping)}, At(31s));
  ledger.OnSeats({SeatOf(SeatState::kDead)}, At(38s));
  const WorkerTime time = ledger.Sum(At(46s));
  EXPECT_TRUE(time.knows_steps);
  EXPECT_EQ(time.steps, 9s);
  EXPECT_EQ(time.evaluating, 1s);
  EXPECT_EQ(time.beside_steps, 10s);
  EXPECT_EQ(time.between_epochs, 8s);
  EXPECT_EQ(time.starting, 2s);
  EXPECT_EQ(time.stopping, 7s);
  EXPECT_EQ(time.no_worker, 9s);
  EXPECT_EQ(time.Total(), 46s);
  EXPECT_DOUBLE_EQ(time.Goodput(), 9.0 / 46);
}

// Its launcher does not know it for one in place before it says so.
TEST(TimeLedger, AJobsFirstWorkerStartsUntilItIsReady) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kStarting)}, At(3s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(4s));
  EXPECT_EQ(ledger.Sum(At(9s)).starting, 4s);
  EXPECT_EQ(ledger.Sum(At(9s)).beside_steps, 5s);
}

// Figures are sums since the worker began; its successor begins anew.
TEST(TimeLedger, FiguresOfASuccessorAreAdded) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w1")}, At(0s));
  ledger.OnFigures(0, Told(3s, 0s));
  ledger.OnFigures(0, Told(5s, 0s));
  ledger.OnSeats({SeatOf(SeatState::kDead, "w1")}, At(10s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w2")}, At(12s));
  ledger.OnFigures(0, Told(1s, 1s));
  EXPECT_EQ(ledger.Sum(At(20s)).steps, 7s);
  EXPECT_EQ(ledger.Sum(At(20s)).beside_steps, 11s);
}

FiguresMessage Made(int64_t step, int64_t steps, Duration took) {
  FiguresMessage figures = Told(took, 0s);
  figures.step = step;
  figures.steps = steps;
  return figures;
}

// All who held the state died at step 140, and the job went on from a checkpoint of step 100.
TEST(TimeLedger, StepsThatAreMadeAgainCountedForNothing) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w1")}, At(0s));
  ledger.OnFigures(0, Made(80, 20, 2s));   // it began with step 60
  ledger.OnFigures(0, Made(140, 80, 8s));
  ledger.OnSeats({SeatOf(SeatState::kDead, "w1")}, At(10s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w2")}, At(12s));
  EXPECT_EQ(ledger.Sum(At(12s)).steps, 8s);
  ledger.OnFigures(0, Made(110, 10, 1s));
  EXPECT_EQ(ledger.Sum(At(20s)).steps, 5s) << "40 of 80 steps, and 10 new ones";
  ledger.OnFigures(0, Made(150, 50, 5s));
  EXPECT_EQ(ledger.Sum(At(20s)).steps, 9s);
  EXPECT_EQ(ledger.Sum(At(20s)).beside_steps, 9s);
  // All of what is counted may be lost, and no more.
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w3")}, At(20s));
  ledger.OnFigures(0, Made(3, 3, 1s));
  EXPECT_EQ(ledger.Sum(At(30s)).steps, 1s);
}

// A newcomer receives the state of a later step than those before it have made.
TEST(TimeLedger, AReplacementBesideSurvivorsLosesNothing) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w1")}, At(0s));
  ledger.OnFigures(0, Made(50, 50, 5s));
  ledger.OnSeats({SeatOf(SeatState::kRunning, "w2")}, At(10s));
  ledger.OnFigures(0, Made(75, 5, 1s));
  EXPECT_EQ(ledger.Sum(At(20s)).steps, 6s);
}

TEST(TimeLedger, AWorkerIsBelievedNoMoreThanTheTimeItHad) {
  TimeLedger ledger(2, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning), SeatOf(SeatState::kRunning)}, At(0s));
  ledger.OnFigures(0, Told(100s, 0s, 100s));
  const WorkerTime time = ledger.Sum(At(10s));
  EXPECT_EQ(time.steps, 10s);
  EXPECT_EQ(time.evaluating, 0s);
  EXPECT_EQ(time.beside_steps, 10s);
  EXPECT_EQ(time.Total(), 20s);
}

TEST(TimeLedger, AfterTheEndNoTimePasses) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(0s));
  ledger.OnEnd(At(4s));
  ledger.OnSeats({SeatOf(SeatState::kDead)}, At(9s));
  EXPECT_EQ(ledger.Sum(At(9s)).Total(), 4s);
  EXPECT_EQ(ledger.Sum(At(9s)).beside_steps, 4s);
}

TEST(TimeLedger, WhatAteTheRestIsToldLargestFirst) {
  WorkerTime time;
  time.knows_steps = true;
  time.steps = 930s;
  time.starting = 20s;
  time.between_epochs = 49s;
  time.stopping = 100ms;   // less than can be told
  time.no_worker = 900ms;
  EXPECT_EQ(WorkerTimeText(time),
            "goodput 0.930: of " + DurationText(1000s) + " of worker time here " +
                DurationText(930s) + " went into steps that counted; the rest: between epochs "
                "4.9%, starting 2.0%, without a worker 0.1%");
  EXPECT_DOUBLE_EQ(WorkerTimeJson(time)["goodput"].get<double>(), 0.93);
  EXPECT_DOUBLE_EQ(WorkerTimeJson(time)["seconds"]["between_epochs"].get<double>(), 49);
}

TEST(TimeLedger, OfWorkersThatTellNothingNoGoodputIsKnown) {
  TimeLedger ledger(1, At(0s));
  ledger.OnSeats({SeatOf(SeatState::kRunning)}, At(0s));
  const WorkerTime time = ledger.Sum(At(5s));
  EXPECT_FALSE(time.knows_steps);
  EXPECT_EQ(time.beside_steps, 5s);
  EXPECT_TRUE(WorkerTimeJson(time)["goodput"].is_null());
  EXPECT_THAT(WorkerTimeText(WorkerTime{}), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace keel
