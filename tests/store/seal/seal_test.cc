// Seals of words, and of values: what a stranger makes, moves, cuts or puts back is not believed.
#include "store/seal/seal.h"

#include <gtest/gtest.h>

#include "store/seal/sealed_past.h"
#include "store/seal/sealed_value.h"

namespace keel {
namespace {

using Verdict = SealedPast::Verdict;

const Seal kSeal("sixteen letters.");
const std::string kWriter(kWriterBytes, 'w');
const std::string kOther(kWriterBytes, 'o');

TEST(Seal, FitsTheVeryWordsAlone) {
  const std::string seal = kSeal.Of({"ab", "c"});
  EXPECT_EQ(seal.size(), Seal::kBytes);
  EXPECT_TRUE(kSeal.Fits(seal, {"ab", "c"}));
  EXPECT_FALSE(kSeal.Fits(seal, {"a", "bc"}));
  EXPECT_FALSE(kSeal.Fits(seal, {"abc"}));
  EXPECT_FALSE(kSeal.Fits(seal, {"ab", "c", ""}));
  EXPECT_FALSE(kSeal.Fits(seal.substr(1), {"ab", "c"}));
  EXPECT_FALSE(Seal("sixteen letters!").Fits(seal, {"ab", "c"}));
}

TEST(Seal, EachPurposeHasASecretOfItsOwn) {
  EXPECT_EQ(kSeal.For({"store"}).secret(), kSeal.For({"store"}).secret());
  EXPECT_NE(kSeal.For({"store"}).secret(), kSeal.For({"peer"}).secret());
  EXPECT_NE(kSeal.For({"a", "b"}).secret(), kSeal.For({"ab"}).secret());
  EXPECT_NE(Seal::Nonce(), Seal::Nonce());
  EXPECT_EQ(Seal::Nonce().size(), 32u);
}

TEST(SealedValue, NoByteOfItCanBeChangedOrCut) {
  const SealedValue value{kWriter, 7, "content"};
  const std::string text = SealedText(kSeal, "key", value);
  EXPECT_EQ(text.size(), value.value.size() + kSealedBytesMore);
  EXPECT_EQ(OpenSealed(kSeal, "key", text), value);
  EXPECT_EQ(OpenSealed(kSeal, "yek", text), std::nullopt);
  EXPECT_EQ(OpenSealed(kSeal.For({"x"}), "key", text), std::nullopt);
  EXPECT_EQ(OpenSealed(kSeal, "key", text + "."), std::nullopt);
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(OpenSealed(kSeal, "key", text.substr(0, at)), std::nullopt) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_EQ(OpenSealed(kSeal, "key", other), std::nullopt) << at << ", " << bit;
    }
  }
}

TEST(SealedValue, AnEmptyOneAndOneOfAnyBytesIsAValue) {
  for (const std::string& content : {std::string(), std::string("\0\n ", 3)}) {
    const SealedValue value{kWriter, uint64_t{1} << 63, content};
    const std::string text = SealedText(kSeal, "k", value);
    EXPECT_EQ(OpenSealed(kSeal, "k", text), value);
    EXPECT_EQ(ValueIn(text), content);
  }
  EXPECT_TRUE(LooksSealed(SealedText(kSeal.For({"x"}), "k", {kWriter, 1, ""})));
  EXPECT_FALSE(LooksSealed("3"));
}

class PastTest : public testing::Test {
 protected:
  static std::string Text(const std::string& writer, uint64_t count, const std::string& value,
                          const std::string& key = "k") {
    return SealedText(kSeal, key, SealedValue{writer, count, value});
  }
  // "believed one"
  std::string Judge(std::optional<std::string> text, std::optional<uint64_t> since = {}) {
    const SealedPast::Judged judged =
        past_.Judge("k", std::move(text), since.value_or(past_.Moment()));
    const char* const words[] = {"absent", "believed", "unsealed", "old", "late"};
    return words[static_cast<int>(judged.verdict)] + (" " + judged.value.value_or("-"));
  }

  SealedPast past_{kSeal};
};

TEST_F(PastTest, WhatIsNotBelievedLeavesTheLastThatWas) {
  EXPECT_EQ(Judge(std::nullopt), "absent -");
  EXPECT_EQ(Judge("one"), "unsealed -");
  EXPECT_EQ(Judge(Text(kWriter, 1, "one", "another key")), "unsealed -");
  EXPECT_EQ(Judge(Text(kWriter, 1, "one")), "believed one");
  EXPECT_EQ(Judge(Text(kWriter, 1, "one")), "believed one");
  EXPECT_EQ(Judge("one"), "unsealed one");
  EXPECT_EQ(Judge(std::nullopt), "absent -");
}

TEST_F(PastTest, AnEarlierValueOfTheSameWriterIsOld) {
  EXPECT_EQ(Judge(Text(kWriter, 5, "five")), "believed five");
  EXPECT_EQ(Judge(Text(kWriter, 4, "four")), "old five");
  EXPECT_EQ(Judge(Text(kWriter, 9, "nine")), "believed nine");
  EXPECT_EQ(Judge(Text(kWriter, 5, "five")), "old nine");
}

TEST_F(PastTest, WritersCountForThemselvesAndNothingOfThemComesBack) {
  EXPECT_EQ(Judge(Text(kWriter, 5, "mine")), "believed mine");
  EXPECT_EQ(Judge(Text(kOther, 1, "yours")), "believed yours");
  EXPECT_EQ(Judge(Text(kWriter, 5, "mine")), "old yours");
  EXPECT_EQ(Judge(Text(kWriter, 6, "again")), "believed again");
  EXPECT_EQ(Judge(Text(kOther, 1, "yours")), "old again");
}

// One connection has read the first value, and judges it after another one has seen the second.
TEST_F(PastTest, WhatIsJudgedLateIsAskedForAgain) {
  const uint64_t before = past_.Moment();
  EXPECT_EQ(Judge(Text(kOther, 1, "second"), before), "believed second");
  EXPECT_EQ(Judge(Text(kWriter, 8, "first"), before), "late second");
  EXPECT_EQ(Judge(Text(kOther, 1, "second"), before), "believed second") << "it is the same";
  EXPECT_EQ(Judge(Text(kWriter, 8, "first")), "believed first") << "it was written once more";
}

TEST_F(PastTest, ForgetsWhatNobodyAsksForAnyMore) {
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 200; ++i) {
    const std::string key = std::to_string(i);
    EXPECT_EQ(past_.Judge(key, Text(kWriter, 1, large, key), past_.Moment()).value, large);
    EXPECT_EQ(Judge(Text(kWriter, 3, "asked")), "believed asked");
  }
  EXPECT_EQ(past_.LastText("0"), std::nullopt);
  EXPECT_TRUE(past_.LastText("199"));
  EXPECT_EQ(Judge(Text(kWriter, 2, "before")), "old asked");
}

}  // namespace
}  // namespace keel
