// What each part of the launcher keeps to, of what the launcher was told.
#include "elastic/launch/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/harness/expect_ok.h"

namespace keel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Nothing at its default.
LaunchConfig Told() {
  LaunchConfig config;
  config.run_id = "job";
  config.hosts = {2, 5};
  config.workers_per_host = 3;
  config.role = "actor";
  config.meeting = LaunchConfig::Meeting::kElastic;
  config.node_rank = 4;
  config.restarts_max = 7;
  config.restart_window = 11min;
  config.allow_inexact = true;
  config.join_limit = 101s;
  config.last_call_limit = 12s;
  config.beat_interval = 2s;
  config.beats_missed_max = 4;
  config.park_limit = 6s;
  config.shutdown_limit = 40s;
  config.start_limit = 300s;
  config.store_limit = 50s;
  return config;
}

Meeting At(std::string address) {
  Meeting meeting;
  meeting.own_address = std::move(address);
  meeting.own_name = "h0";
  return meeting;
}

TEST(LaunchPolicies, WorkersAreToldWhereTheLeaseIs) {
  LaunchConfig config = Told();
  EXPECT_EQ(WorkerPlanFrom(config).lease_folder, "");
  config.lease_directory = "/shared";
  EXPECT_EQ(WorkerPlanFrom(config).lease_folder, "/shared/job.lease");
  config.lease_directory = "here";
  EXPECT_EQ(WorkerPlanFrom(config).lease_folder.front(), '/');
}

TEST(LaunchPolicies, ScriptsOfThePackageWillSayHello) {
  LaunchConfig config = Told();
  EXPECT_FALSE(JobPolicyFrom(config).program_says_hello);
  config.is_of_package = true;
  EXPECT_TRUE(JobPolicyFrom(config).program_says_hello);
  EXPECT_TRUE(HostConfigFrom(config, At("10.0.0.7"), "cafe").program_says_hello);
}

TEST(LaunchPolicies, AHostKeepsToWhatItWasTold) {
  const HostConfig host = HostConfigFrom(Told(), At("10.0.0.7"), "cafe");
  EXPECT_EQ(host.incarnation, "cafe");
  EXPECT_EQ(host.host, "h0");
  EXPECT_EQ(host.address, "10.0.0.7");
  EXPECT_EQ(host.seats, 3);
  EXPECT_EQ(host.role, "actor");
  EXPECT_EQ(host.restarts.restarts_max, 7);
  EXPECT_EQ(host.restarts.window, Duration(11min));
  EXPECT_EQ(host.join_limit, Duration(101s));
  EXPECT_EQ(host.store_limit, Duration(50s));
  EXPECT_EQ(host.park_limit, Duration(6s));
  EXPECT_EQ(host.start_limit, Duration(300s));
  EXPECT_EQ(host.shutdown_limit, Duration(40s));
  EXPECT_EQ(host.save_limit, Duration(40s));
}

TEST(LaunchPolicies, OnlyFixedHostsAreOrderedByTheirNumber) {
  LaunchConfig config = Told();
  EXPECT_EQ(HostConfigFrom(config, At("::1"), "a").order, 0);
  config.meeting = LaunchConfig::Meeting::kStatic;
  EXPECT_EQ(HostConfigFrom(config, At("::1"), "a").order, 4);
}

TEST(LaunchPolicies, TheJobKeepsToWhatItsCoordinatorWasTold) {
  const JobPolicy policy = JobPolicyFrom(Told());
  EXPECT_EQ(policy.hosts_min, 2);
  EXPECT_EQ(policy.hosts_max, 5);
  EXPECT_EQ(policy.join_limit, Duration(101s));
  EXPECT_EQ(policy.last_call_limit, Duration(12s));
  EXPECT_EQ(policy.beat_limit, Duration(8s));
  EXPECT_EQ(policy.park_limit, Duration(6s));
  EXPECT_EQ(policy.restarts.restarts_max, 7);
  EXPECT_EQ(policy.restarts.window, Duration(11min));
  EXPECT_TRUE(policy.allow_inexact);
  EXPECT_EQ(policy.stop_grace, Duration(48s)) << "the others' time to stop, and a beat unheard";
}

TEST(LaunchPolicies, FixedHostsAreAwaitedForAsLongAsTheStore) {
  LaunchConfig config = Told();
  config.read_limit = 8s;
  EXPECT_EQ(JobPolicyFrom(config).join_limit, Duration(101s)) << "other hosts have two words";
  config.meeting = LaunchConfig::Meeting::kStatic;
  EXPECT_EQ(JobPolicyFrom(config).join_limit, Duration(8s));
  config.is_join_limit_given = true;
  EXPECT_EQ(JobPolicyFrom(config).join_limit, Duration(101s));
}

class SomeServer : public StoreServer {
 public:
  uint16_t port() const override { return 7; }
};

TEST(LaunchPolicies, TheHostOfTheStoreIsNotHurriedByTheLimitForOthers) {
  LaunchConfig config = Told();
  config.read_limit = 8s;
  Meeting meeting = At("10.0.0.7");
  EXPECT_EQ(HostConfigFrom(config, meeting, "a").join_limit, Duration(8s));
  meeting.server = std::make_unique<SomeServer>();
  EXPECT_EQ(HostConfigFrom(config, meeting, "a").join_limit, Duration(101s));
}

TEST(LaunchPolicies, AStandaloneJobHasOneHost) {
  LaunchConfig config = Told();
  config.hosts = {1, 5};
  config.meeting = LaunchConfig::Meeting::kStandalone;
  EXPECT_EQ(JobPolicyFrom(config).hosts_max, 1);
}

// Whoever is cut off gives up by itself before the others go on without it.
TEST(LaunchPolicies, AHostThatIsCutOffHasStoppedBeforeItIsFenced) {
  for (const Duration store_limit : {Duration(0), Duration(1s), Duration(50s), Duration(48h)}) {
    LaunchConfig config = Told();
    config.store_limit = store_limit;
    const HostConfig host = HostConfigFrom(config, At("::1"), "a");
    const Duration fence = JobPolicyFrom(config).fence_limit;
    EXPECT_GE(fence, host.store_limit + host.shutdown_limit + host.park_limit);
    EXPECT_GE(fence, host.quiet_limit + host.park_limit);
  }
}

TEST(LaunchPolicies, HangsAreMeasuredGivenOrNotLookedFor) {
  LaunchConfig config = Told();
  EXPECT_EQ(JobPolicyFrom(config).hang_limit, std::nullopt);
  config.hangs = LaunchConfig::Hangs::kGiven;
  config.hang_limit = 90s;
  EXPECT_EQ(JobPolicyFrom(config).hang_limit, Duration(90s));
  config.hangs = LaunchConfig::Hangs::kOff;
  EXPECT_EQ(JobPolicyFrom(config).hang_limit, kLongestWait);
}

TEST(LaunchPolicies, AMemberBeatsAndLooksAsOftenAsItWasTold) {
  LaunchConfig config = Told();
  const BoardClientConfig slow = MemberConfigFrom(config);
  EXPECT_EQ(slow.job, "job");
  EXPECT_EQ(slow.beat_interval, Duration(2s));
  config.beat_interval = 20ms;
  EXPECT_EQ(MemberConfigFrom(config).poll_interval, Duration(20ms));
}

// As much as can be asked for: the sums are times still.
TEST(LaunchPolicies, TheLongestWaitsAddUp) {
  LaunchConfig config = Told();
  config.join_limit = config.last_call_limit = config.park_limit = config.shutdown_limit =
      config.start_limit = config.store_limit = kLongestWait;
  config.beat_interval = kLongestWait / config.beats_missed_max;
  const JobPolicy policy = JobPolicyFrom(config);
  EXPECT_GT(policy.fence_limit, kLongestWait);
  EXPECT_GT(policy.stop_grace, kLongestWait);
}

TEST(LaunchPolicies, FilesAreWantedForEachWorkerAndAtTheStoreForEachHost) {
  LaunchConfig config = Told();
  config.is_store_host = false;
  const uint64_t before = OpenFilesWanted(config);
  config.hosts.least += 10;
  EXPECT_EQ(OpenFilesWanted(config), before);
  config.workers_per_host += 10;
  EXPECT_GE(OpenFilesWanted(config), before + 50);
  const uint64_t elsewhere = OpenFilesWanted(config);
  config.is_store_host.reset();
  EXPECT_EQ(OpenFilesWanted(config), elsewhere);
  config.meeting = LaunchConfig::Meeting::kStatic;
  EXPECT_EQ(OpenFilesWanted(config), elsewhere) << "it is not the first host";
  config.node_rank = 0;
  const uint64_t at_the_store = OpenFilesWanted(config);
  EXPECT_GE(at_the_store, elsewhere + 12 * 13);
  config.status = StatusAddress{};
  EXPECT_GT(OpenFilesWanted(config), at_the_store + 64) << "for those who watch";
}

TEST(LaunchPolicies, OnlyFixedHostsAreExpectedToMeetWhereTheyWereTold) {
  using Meeting = LaunchConfig::Meeting;
  LaunchConfig config = Told();
  config.endpoint_host = "node0";
  keel::Meeting where = At("10.0.0.7");
  where.port = 7;
  where.store_bind = "10.0.0.8";
  where.is_name_known = true;
  EXPECT_FALSE(WorkersMeet(config, where).has_value());
  config.meeting = Meeting::kStandalone;
  EXPECT_FALSE(WorkersMeet(config, where).has_value());
  config.meeting = Meeting::kStatic;
  ASSERT_TRUE(WorkersMeet(config, where).has_value());
  EXPECT_EQ(WorkersMeet(config, where)->host, "node0");
  EXPECT_EQ(WorkersMeet(config, where)->port, 7);
  EXPECT_EQ(WorkersMeet(config, where)->bind, "10.0.0.8");
  where.is_name_known = false;
  EXPECT_EQ(WorkersMeet(config, where)->host, "10.0.0.7") << "a name that cannot be looked up";
}

TEST(LaunchPolicies, AJobOfOneHostIsAloneUnlessOthersMayFindIt) {
  using Meeting = LaunchConfig::Meeting;
  LaunchConfig config = Told();
  config.hosts = {1, 1};
  for (const auto& [meeting, alone] : {std::pair{Meeting::kStandalone, true},
                                       std::pair{Meeting::kStatic, true},
                                       std::pair{Meeting::kElastic, false},
                                       std::pair{Meeting::kEtcd, false}}) {
    config.meeting = meeting;
    EXPECT_EQ(IsAlone(config), alone) << static_cast<int>(meeting);
  }
  config.hosts = {2, 2};
  config.meeting = Meeting::kStatic;
  EXPECT_FALSE(IsAlone(config));
}

// Of hosts that meet by a lease, none opens a store at first.
class NoStores : public StoreMaker {
 public:
  Result<std::unique_ptr<StoreServer>> Adopt(ListenSocket) override { return None(); }
  Result<std::unique_ptr<Store>> Connect(const std::string&, uint16_t, Duration,
                                         const CancelToken&) override {
    return None();
  }

 private:
  static Error None() { return {Code::kNotFound, "there are no stores"}; }
};

TEST(LaunchMeeting, OurOwnAddressIsANumberOrIsRefused) {
  NoStores stores;
  LaunchConfig config = Told();
  config.meets_by_lease = true;
  const std::pair<const char*, const char*> cases[] = {
      {"127.0.0.2", "127.0.0.2"}, {"localhost", "127.0.0.1"}, {"::1", "::1"}};
  for (const auto& [text, number] : cases) {
    config.local_address = text;
    ASSERT_OK_AND_ASSIGN(const Meeting meeting, OpenMeeting(config, stores));
    EXPECT_EQ(meeting.own_address, number);
    EXPECT_EQ(meeting.bind, number);
  }
  config.local_address = "2001:db8::7";   // behind a translation of addresses
  ASSERT_OK_AND_ASSIGN(const Meeting meeting, OpenMeeting(config, stores));
  EXPECT_EQ(meeting.own_address, "2001:db8::7");
  EXPECT_EQ(meeting.bind, "");
  // No name service is asked for a name of so long a part.
  config.local_address = std::string(64, 'a');
  const auto refused = OpenMeeting(config, stores);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("option '--local-addr': host 'aaa"));
  EXPECT_THAT(refused.error().message, HasSubstr("or give a numeric address"));
}

}  // namespace
}  // namespace keel
