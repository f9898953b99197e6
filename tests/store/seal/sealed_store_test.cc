// A sealed store keeps the contract among those who have the secret, and a stranger who can do all
// to the store beneath makes nobody believe him.
#include "store/seal/sealed_store.h"

#include <optional>
#include <vector>

#include "base/hmac.h"
#include "base/log.h"
#include "base/random.h"
#include "store/memory_store.h"
#include "store/seal/store_sealer.h"
#include "tests/harness/expect_ok.h"
#include "tests/store/store_contract.h"

namespace keel {
namespace {

// Each client is a process of its own.
class SealedTestBoard : public TestBoard {
 public:
  std::unique_ptr<Store> Client() override {
    return StoreSealer(Seal("secret of the test"), {}).Sealed(board_.Connect("test"), "a board");
  }
  size_t value_bytes_max() const override { return kStoreValueBytesMax - kSealedBytesMore; }

 private:
  MemoryBoard board_{RealClock()};
};

INSTANTIATE_TEST_SUITE_P(Sealed, StoreContract, testing::Values(MakeBoard([] {
                           return std::make_unique<SealedTestBoard>();
                         })));

class SealedStoreTest : public testing::Test {
 protected:
  SealedStoreTest() {
    LogToCallback([this](std::string_view line) { log_ += line; });
  }
  ~SealedStoreTest() override { LogToStderr(); }

  std::unique_ptr<Store> Process() {
    return StoreSealer(Seal("secret of the test"), {"open"}).Sealed(board_.Connect("x"), "there");
  }
  std::string Raw(const std::string& key) { return (*stranger_->Get(key)).value_or(""); }

  std::string log_;
  MemoryBoard board_{RealClock()};
  const std::unique_ptr<Store> stranger_ = board_.Connect("stranger");
  const std::unique_ptr<Store> a_ = Process();
  const std::unique_ptr<Store> b_ = Process();
};

TEST_F(SealedStoreTest, WhatAStrangerWritesIsNotThereAndToldOnce) {
  ASSERT_OK(stranger_->Set("k", "forged"));
  EXPECT_EQ(*a_->Get("k"), std::nullopt);
  EXPECT_EQ(*a_->Get("k"), std::nullopt);
  EXPECT_FALSE(*a_->Has("k"));
  EXPECT_TRUE(a_->Wait({"k"}, Duration(0), CancelToken::Never()).ok());
  EXPECT_THAT(log_, testing::HasSubstr("store-stranger store=there key=k"));
  EXPECT_EQ(log_.find("store-stranger"), log_.rfind("store-stranger"));
}

TEST_F(SealedStoreTest, WhoFindsAValueSpoiltPutsItBack) {
  ASSERT_OK(a_->CompareSet("k", std::nullopt, "mine"));
  EXPECT_EQ(*b_->Get("k"), "mine");
  const std::string sealed = Raw("k");
  for (const char* const forged : {"forged", ""}) {
    ASSERT_OK(stranger_->Delete("k"));
    ASSERT_OK(stranger_->Set("k", forged));
    EXPECT_EQ(*Process()->Get("k"), std::nullopt) << "a newcomer has seen nothing";
    EXPECT_EQ(*b_->GetMany({"k"}), std::vector<std::optional<std::string>>{"mine"});
    EXPECT_EQ(Raw("k"), sealed);
  }
}

TEST_F(SealedStoreTest, WhatIsPutBackIsKnownToBeOld) {
  ASSERT_OK(a_->Set("k", "one"));
  EXPECT_EQ(*b_->Get("k"), "one");
  const std::string one = Raw("k");
  ASSERT_OK(a_->Set("k", "two"));
  EXPECT_EQ(*b_->Get("k"), "two");
  ASSERT_OK(stranger_->Set("k", one));
  EXPECT_EQ(*b_->Get("k"), "two");
  EXPECT_THAT(log_, testing::HasSubstr("somebody has put it back"));
}

TEST_F(SealedStoreTest, AnotherKeysValueIsNone) {
  ASSERT_OK(a_->Set("k", "one"));
  ASSERT_OK(stranger_->Set("l", Raw("k")));
  EXPECT_EQ(*b_->Get("l"), std::nullopt);
}

TEST_F(SealedStoreTest, ComparesWithWhatIsBelieved) {
  ASSERT_OK(a_->Set("k", "-"));
  EXPECT_EQ(*b_->Get("k"), "-");
  ASSERT_OK(stranger_->Set("k", "forged"));
  EXPECT_TRUE(b_->CompareSet("k", "-", "mine")->holds_desired);
  EXPECT_EQ(*a_->Get("k"), "mine");
  ASSERT_OK(stranger_->Set("l", "forged"));
  EXPECT_TRUE(b_->CompareSet("l", std::nullopt, "first")->holds_desired);
  EXPECT_FALSE(a_->CompareSet("l", std::nullopt, "second")->holds_desired);
}

TEST_F(SealedStoreTest, OneWriterNeedsOneOperationForEachValue) {
  ASSERT_TRUE(a_->CompareSet("beat", std::nullopt, "1")->holds_desired);
  const int64_t before = board_.OperationCount();
  for (int i = 1; i < 100; ++i) {
    EXPECT_TRUE(a_->CompareSet("beat", std::to_string(i), std::to_string(i + 1))->holds_desired);
  }
  EXPECT_EQ(board_.OperationCount() - before, 99);
}

TEST_F(SealedStoreTest, OpenKeysAndNumbersAreAsTheyAre) {
  ASSERT_OK(a_->Set("open", "text"));
  EXPECT_EQ(Raw("open"), "text");
  EXPECT_EQ(*b_->Get("open"), "text");
  EXPECT_EQ(*a_->Add("n", 2), 2);
  EXPECT_EQ(Raw("n"), "2");
  EXPECT_EQ(*b_->Get("n"), std::nullopt) << "it is read by adding nothing";
}

// A stranger does what he likes; whoever believes anything believes what a member has written.
TEST_F(SealedStoreTest, AThousandForgeriesAndNoneIsBelieved) {
  Random random(2026);
  std::vector<std::string> seen;
  int64_t written = 0;
  int64_t read = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == 0) {
      ASSERT_OK(a_->Set("k", std::to_string(++written)));
      EXPECT_EQ(*b_->Get("k"), std::to_string(written));
    }
    if (!Raw("k").empty()) seen.push_back(Raw("k"));
    std::string forged = seen[random.Uniform(seen.size())];
    switch (random.Uniform(4)) {
      case 0: forged.resize(random.Uniform(forged.size() + 1)); break;
      case 1: forged[random.Uniform(forged.size())] ^= static_cast<char>(1 + random.Uniform(255));
        break;
      case 2: forged = "sealed1:" + std::string(random.Uniform(80), 'x'); break;
      default: break;   // put back as it was
    }
    ASSERT_OK(stranger_->Set("k", forged));
    const auto value = b_->Get("k");
    ASSERT_OK(value);
    ASSERT_EQ(*value, std::to_string(written)) << i;
    ++read;
  }
  EXPECT_EQ(read, 1000);
}

}  // namespace
}  // namespace keel
