// Every state of a share with everything that can happen to it.
#include "trainer/save/share_state.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace keel {
namespace {

using enum ShareState;
using enum ShareEvent;
using enum ShareFate;

// What becomes of it; nothing: it cannot happen.
using Expected = std::optional<std::pair<ShareState, ShareFate>>;
constexpr std::nullopt_t kNever = std::nullopt;

std::pair<ShareState, ShareFate> To(ShareState state, ShareFate fate = kKeep) {
  return {state, fate};
}

struct Row {
  ShareState from;
  // By event: begin, wrote, fail, tell, commit, drop, lose.
  std::array<Expected, kShareEvents.size()> to;
};

const std::array<Row, kShareStates.size()> kTable = {{
    {kNone,
     {To(kWriting), kNever, kNever, To(kNone), kNever, To(kNone), To(kNone)}},
    {kWriting,
     {kNever, To(kWritten), To(kFailed), To(kWriting), kNever, To(kNone, kRemove),
      To(kNone, kRemove)}},
    {kWritten,
     {kNever, kNever, kNever, To(kPromised), To(kNone, kHandOver), To(kNone, kRemove),
      To(kNone, kRemove)}},
    {kPromised,
     {kNever, kNever, kNever, To(kPromised), To(kNone, kHandOver), To(kNone, kRemove),
      To(kNone, kLeave)}},
    {kFailed,
     {kNever, kNever, kNever, To(kFailed), kNever, To(kNone, kRemove), To(kNone, kRemove)}},
}};

TEST(ShareState, EveryEventInEveryState) {
  for (const Row& row : kTable) {
    for (const ShareEvent event : kShareEvents) {
      SCOPED_TRACE(std::string(ShareStateName(row.from)) + ", " +
                   std::string(ShareEventName(event)));
      const Expected& expected = row.to[static_cast<size_t>(event)];
      const ShareTransition* const transition = FindTransition(row.from, event);
      ASSERT_EQ(transition != nullptr, expected.has_value());
      if (transition == nullptr) continue;
      EXPECT_EQ(transition->to, expected->first);
      EXPECT_EQ(transition->fate, expected->second);
      EXPECT_FALSE(transition->reason.empty());
    }
  }
}

// What the table is for: a manifest may name this worker's share.
TEST(ShareState, APromisedShareIsRemovedOnlyWhereAllAgreed) {
  for (const ShareEvent event : kShareEvents) {
    const ShareTransition* const transition = FindTransition(kPromised, event);
    if (transition == nullptr || transition->fate != kRemove) continue;
    EXPECT_EQ(event, kDrop) << ShareEventName(event);
  }
}

TEST(ShareState, EveryStateIsLeftAgain) {
  for (const ShareState state : kShareStates) {
    const ShareTransition* const lost = FindTransition(state, kLose);
    ASSERT_NE(lost, nullptr) << ShareStateName(state);
    EXPECT_EQ(lost->to, kNone) << ShareStateName(state);
  }
}

}  // namespace
}  // namespace keel
