// What store/lease/lease.h promises, held against every maker of a lease: instantiate LeaseContract
// with a LeasePlace.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "store/lease/lease.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/sanitizers.h"
#include "tests/store/lease/racer.h"

namespace keel {

// A place that holds leases, empty at first.
struct LeasePlace {
  virtual ~LeasePlace() = default;
  // Another process's view of it.
  virtual std::unique_ptr<Lease> Open(const LeaseOwner& owner) = 0;
};

struct LeaseMaker {
  const char* name;
  std::unique_ptr<LeasePlace> (*make)();
};
inline void PrintTo(const LeaseMaker& maker, std::ostream* out) { *out << maker.name; }

class LeaseContract : public testing::TestWithParam<LeaseMaker> {
 protected:
  std::unique_ptr<Lease> Open(const std::string& job = "job", const std::string& run = "run") {
    return place_->Open({job, run});
  }
  LeaseSight See(Lease& lease) {
    const Result<LeaseSight> sight = lease.Look();
    EXPECT_OK(sight);
    return sight.ok() ? *sight : LeaseSight{};
  }

  const std::unique_ptr<LeasePlace> place_ = GetParam().make();
  const std::unique_ptr<Lease> a_ = Open(), b_ = Open();
};

TEST_P(LeaseContract, NobodyHoldsANewOne) { EXPECT_EQ(See(*a_), LeaseSight{}); }

TEST_P(LeaseContract, ATermIsGivenOnce) {
  EXPECT_OK(a_->Claim(1, "a:1"));
  EXPECT_EQ(b_->Claim(1, "b:1").error().code, Code::kExists);
  for (Lease* const lease : {a_.get(), b_.get()}) {
    const LeaseSight sight = See(*lease);
    EXPECT_EQ(sight.term, 1);
    EXPECT_EQ(sight.run, "run");
    EXPECT_EQ(sight.text, "a:1");
    EXPECT_EQ(sight.damage, "");
    EXPECT_FALSE(sight.released);
  }
}

TEST_P(LeaseContract, AClaimOfOnesOwnIsFoundAgain) {
  EXPECT_OK(a_->Claim(1, "a:1"));
  EXPECT_OK(a_->Claim(1, "a:1"));
  EXPECT_OK(a_->Beat());
}

TEST_P(LeaseContract, TermsOnlyRise) {
  EXPECT_OK(a_->Claim(7, "a"));
  EXPECT_EQ(b_->Claim(3, "b").error().code, Code::kStaleEpoch);
  EXPECT_OK(b_->Claim(9, "b"));
  EXPECT_EQ(See(*a_).term, 9);
}

TEST_P(LeaseContract, EachBeatIsSeen) {
  EXPECT_OK(a_->Claim(1, "a"));
  const std::string none = See(*b_).beat;
  EXPECT_OK(a_->Beat());
  const std::string first = See(*b_).beat;
  EXPECT_EQ(See(*b_).beat, first);
  EXPECT_OK(a_->Beat());
  const std::string second = See(*b_).beat;
  EXPECT_NE(none, first);
  EXPECT_NE(first, second);
}

TEST_P(LeaseContract, AHolderIsToldOfAHigherTermByItsNextBeat) {
  EXPECT_OK(a_->Claim(1, "a"));
  EXPECT_OK(a_->Beat());
  EXPECT_OK(b_->Claim(2, "b"));
  EXPECT_OK(b_->Beat());
  const std::string beat = See(*b_).beat;
  EXPECT_EQ(a_->Beat().error().code, Code::kStaleEpoch);
  EXPECT_EQ(See(*b_).beat, beat) << "a holder that is late beat for the new one";
  EXPECT_OK(b_->Beat());
}

TEST_P(LeaseContract, AReleasedTermIsSeenSo) {
  EXPECT_OK(a_->Claim(1, "a"));
  EXPECT_OK(a_->Beat());
  EXPECT_OK(a_->Release());
  EXPECT_TRUE(See(*b_).released);
  EXPECT_OK(b_->Claim(2, "b"));
  EXPECT_FALSE(See(*a_).released);
}

TEST_P(LeaseContract, OneProcessMayClaimOneTermAfterTheOther) {
  for (int64_t term = 1; term <= 30; ++term) {
    EXPECT_OK(a_->Claim(term, std::to_string(term)));
    EXPECT_OK(a_->Beat());
    EXPECT_EQ(See(*b_).text, std::to_string(term));
  }
}

TEST_P(LeaseContract, JobsDoNotSeeEachOther) {
  const auto other = Open("other job/..", "run");
  EXPECT_OK(a_->Claim(5, "a"));
  EXPECT_EQ(See(*other).term, 0);
  EXPECT_OK(other->Claim(1, "other"));
  EXPECT_EQ(See(*a_).text, "a");
}

TEST_P(LeaseContract, RunsOfOneNameShareALeaseAndAreToldApart) {
  const auto other = Open("job", "another run");
  EXPECT_OK(other->Claim(1, "b"));
  EXPECT_EQ(See(*a_).run, "another run");
  EXPECT_EQ(a_->Claim(1, "a").error().code, Code::kExists);
}

TEST_P(LeaseContract, ATextMayHaveAnythingInIt) {
  const std::string text = "10.0.0.7:29400\n\"\\ \t{}\xc3\xa4" + std::string(1, '\0') + "x";
  EXPECT_OK(a_->Claim(1, text));
  EXPECT_EQ(See(*b_).text, text);
  EXPECT_OK(a_->Claim(2, ""));
  EXPECT_OK(a_->Claim(3, std::string(kLeaseTextBytesMax, '\n')));
  EXPECT_EQ(See(*b_).text.size(), kLeaseTextBytesMax);
  EXPECT_EQ(a_->Claim(4, std::string(kLeaseTextBytesMax + 1, 'x')).error().code, Code::kInvalid);
}

TEST_P(LeaseContract, OfManyWhoRaceForATermOneWins) {
  constexpr int kRacers = 4;
  constexpr int64_t kLast = Rounds(200, 50);
  std::vector<std::unique_ptr<Lease>> leases;
  std::vector<Racer> racers;
  for (int i = 0; i < kRacers; ++i) {
    leases.push_back(Open());
    racers.emplace_back(*leases.back(), "racer " + std::to_string(i));
  }
  std::vector<std::thread> threads;
  for (Racer& racer : racers) threads.emplace_back([&] { EXPECT_OK(racer.Run(kLast)); });
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> won;
  for (const Racer& racer : racers) won.insert(won.end(), racer.won().begin(), racer.won().end());
  EXPECT_EQ(WhyNotOneWinnerEach(won, kLast), "");
}

}  // namespace keel
