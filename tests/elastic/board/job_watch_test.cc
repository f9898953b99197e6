// JobWatch: what the coordinator keeps of what it has read, and for how long.
#include "elastic/board/job_watch.h"

#include <gtest/gtest.h>

namespace keel {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};

void Come(JobWatch& watch, int64_t slot) {
  MemberRecord record;
  record.incarnation = "i" + std::to_string(slot);
  record.host = "h" + std::to_string(slot);
  watch.NoteMember(slot, MemberText(record), "1", kNow);
}

// Weeks on spot machines leave thousands of former hosts, and each decision looks at all that are
// known.
TEST(JobWatch, FormerHostsAreForgottenUnlessTheEpochNamesThem) {
  JobWatch watch("i1999", BoardKeys("j", "g"));
  watch.NoteOpened(kNow);
  Come(watch, 0);
  Decision formed;
  formed.epoch.number = 1;
  formed.epoch.hosts = {{0, "i0", 0, 0}};
  watch.NoteEpoch(formed.epoch, formed, kNow);
  for (int64_t slot = 1; slot < 2000; ++slot) Come(watch, slot);
  for (int64_t slot = 0; slot < 1999; ++slot) watch.NoteGone(slot, "it left");
  watch.NoteAllRead(kNow);
  EXPECT_LT(watch.view().hosts.size(), 100u);
  EXPECT_NE(watch.HostAt(0), nullptr) << "the epoch names it";
  EXPECT_NE(watch.HostAt(1998), nullptr) << "those who watch the job see who went last";
  for (int64_t slot = 0; slot < 1999; ++slot) EXPECT_TRUE(watch.IsOver(slot)) << slot;
  EXPECT_FALSE(watch.IsOver(1999));
  EXPECT_FALSE(watch.IsOver(2000)) << "nobody has come there yet";
}

}  // namespace
}  // namespace keel
