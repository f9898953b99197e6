// Beside: what a host does at an endpoint that is another job's, case by case.
#include "elastic/decisions/beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Verdict = BesideStep::Verdict;

const BoardPlace kOwn{1, 0, "10.0.0.1:4000", "us"};
const BoardPlace kTheirs{1, 0, "10.0.0.2:4000", "them"};

BesideView Nothing() {
  return {.job = "b", .keeper = "a", .endpoint = "host:29400", .self = "us", .patience = 90s};
}

TEST(Beside, AHostOpensABoardAndPostsItWhereNoneIsPosted) {
  BesideView view = Nothing();
  const BesideStep opens = DecideBeside(view);
  EXPECT_EQ(opens.verdict, Verdict::kOpen);
  EXPECT_EQ(opens.place.term, 1);
  EXPECT_EQ(opens.place.by, "us");
  EXPECT_THAT(opens.detail, HasSubstr("the store at host:29400 is that of job 'a'"));
  view.own = kOwn;
  const BesideStep posts = DecideBeside(view);
  EXPECT_EQ(posts.verdict, Verdict::kPost);
  EXPECT_EQ(posts.place, kOwn);
  view.posted = kOwn;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kFollow);
  EXPECT_EQ(DecideBeside(view).place, kOwn);
}

TEST(Beside, WhoIsPostedAndThereIsFollowedEvenByAHostWithABoardOfItsOwn) {
  BesideView view = Nothing();
  view.posted = kTheirs;
  view.is_there = true;
  view.own = kOwn;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kFollow);
  EXPECT_EQ(DecideBeside(view).place, kTheirs);
}

TEST(Beside, OnlyABoardThatIsKnownToBeGoneIsReplaced) {
  BesideView view = Nothing();
  view.posted = kTheirs;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kWait);
  EXPECT_THAT(DecideBeside(view).detail, HasSubstr("10.0.0.2:4000, which does not answer"));
  view.is_gone = true;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kOpen);
  view.own = kOwn;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kPost);
}

TEST(Beside, ABoardThatIsSilentForLongIsReplaced) {
  BesideView view = Nothing();
  view.posted = kTheirs;
  view.silent_for = view.patience - 1s;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kWait);
  EXPECT_THAT(DecideBeside(view).detail, HasSubstr("after 1 min 30 s of that another board"));
  view.silent_for = view.patience;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kOpen);
  view.own = kOwn;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kPost);
}

// One that was started again, at the same address, has another incarnation.
TEST(Beside, TheBoardOfAFormerLauncherIsNotTheOwn) {
  BesideView view = Nothing();
  view.posted = {1, 0, kOwn.address, "former"};
  view.is_gone = true;
  view.own = kOwn;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kPost);
}

TEST(Beside, AHostThatMayKeepNoBoardWaitsAndSaysForWhat) {
  BesideView view = Nothing();
  view.may_open = false;
  EXPECT_EQ(DecideBeside(view).verdict, Verdict::kWait);
  EXPECT_THAT(DecideBeside(view).detail, HasSubstr("the launcher that is to keep the one of job "
                                                   "'b' has not come to it"));
}

}  // namespace
}  // namespace keel
