// The sealed lines of the peer port, both ends, and a stranger between them.
#include "elastic/board/peer_seal.h"

#include <gtest/gtest.h>

#include <vector>

namespace keel {
namespace {

const Seal kSeal("the secret of all launchers");
const Seal kOther("the secret of other launchers");
const SealedQuestion kQuestion{"ask", "a job, with blanks", Seal::Nonce()};

TEST(PeerSeal, AQuestionShowsThatWhoAsksHasTheToken) {
  const std::string line = QuestionLine(kSeal, kQuestion);
  const auto opened = OpenQuestion(kSeal, line);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->subject, kQuestion.subject);
  EXPECT_EQ(opened->verb, "ask");
  EXPECT_EQ(opened->nonce, kQuestion.nonce);
  EXPECT_FALSE(OpenQuestion(kOther, line));
  for (size_t at = 0; at < line.size(); ++at) {
    std::string changed = line;
    changed[at] ^= 1;
    EXPECT_FALSE(OpenQuestion(kSeal, changed)) << changed;
    EXPECT_FALSE(OpenQuestion(kSeal, line.substr(0, at))) << line.substr(0, at);
  }
}

TEST(PeerSeal, AnAnswerBelongsToItsQuestion) {
  const std::string line = AnswerLine(kSeal, kQuestion, "at 5 {\"term\": 3}");
  EXPECT_EQ(OpenAnswer(kSeal, kQuestion, line), "at 5 {\"term\": 3}");
  EXPECT_FALSE(OpenAnswer(kOther, kQuestion, line));
  EXPECT_FALSE(OpenAnswer(kSeal, {"ask", kQuestion.subject, Seal::Nonce()}, line)) << "a replay";
  EXPECT_FALSE(OpenAnswer(kSeal, {"vouch", kQuestion.subject, kQuestion.nonce}, line));
  EXPECT_FALSE(OpenAnswer(kSeal, kQuestion, "at 5 {\"term\": 3}"));
  EXPECT_FALSE(OpenAnswer(kSeal, kQuestion, ""));
}

TEST(PeerSeal, AChallengeIsForOneGreetingAlone) {
  const std::string line = ChallengeLine(kSeal, "greeting", "nonce");
  EXPECT_EQ(OpenChallenge(kSeal, "greeting", line), "nonce");
  EXPECT_FALSE(OpenChallenge(kSeal, "another", line));
  EXPECT_FALSE(OpenChallenge(kOther, "greeting", line));
  EXPECT_FALSE(OpenChallenge(kSeal, "greeting", "challenge nonce"));
  EXPECT_FALSE(OpenChallenge(kSeal, "greeting", "look"));
}

class SessionTest : public testing::Test {
 protected:
  SealedSession member_{kSeal, "a", "b", PeerEnd::kMember};
  SealedSession coordinator_{kSeal, "a", "b", PeerEnd::kCoordinator};
};

TEST_F(SessionTest, BothEndsHearEachOther) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(coordinator_.Hear(member_.Say("news")), "news");
    EXPECT_EQ(member_.Hear(coordinator_.Say("look")), "look");
  }
}

TEST_F(SessionTest, ALineCountsOnceInItsPlaceAndOnItsWay) {
  const std::string first = member_.Say("hello 3 cafe");
  const std::string second = member_.Say("news");
  EXPECT_FALSE(coordinator_.Hear(second)) << "one is missing before it";
  EXPECT_FALSE(member_.Hear(first)) << "it comes back to who said it";
  EXPECT_EQ(coordinator_.Hear(first), "hello 3 cafe");
  EXPECT_FALSE(coordinator_.Hear(first));
  EXPECT_EQ(coordinator_.Hear(second), "news");
  SealedSession later(kSeal, "a", "c", PeerEnd::kCoordinator);
  EXPECT_FALSE(later.Hear(first)) << "another connection has another nonce";
  EXPECT_FALSE(later.Hear("hello 3 cafe"));
}

}  // namespace
}  // namespace keel
