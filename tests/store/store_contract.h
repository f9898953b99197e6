// What every Store must do, as a suite that each implementation instantiates with its own board.
// The suite's tests are in store_contract.cc, which is a part of each such program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "store/store.h"

namespace keel {

// One board, and clients of it for as long as this object lives.
class TestBoard {
 public:
  virtual ~TestBoard() = default;
  virtual std::unique_ptr<Store> Client() = 0;
  virtual size_t value_bytes_max() const { return kStoreValueBytesMax; }
  // Why this machine has no such board; empty: it has.
  virtual std::string WhyAbsent() const { return ""; }
};
using MakeBoard = std::function<std::unique_ptr<TestBoard>()>;

class StoreContract : public testing::TestWithParam<MakeBoard> {
 protected:
  void SetUp() override {
    if (store_ == nullptr) GTEST_SKIP() << "there is no board: " << board_->WhyAbsent();
  }

  const std::unique_ptr<TestBoard> board_ = GetParam()();
  const std::unique_ptr<Store> store_ = board_->WhyAbsent().empty() ? board_->Client() : nullptr;
};

inline const Duration kTestLimit = std::chrono::seconds(20);

}  // namespace keel
