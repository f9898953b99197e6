// --port-range: all ports on which launchers listen are of it, but for those that were given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <set>
#include <vector>

#include "store/listen_socket.h"
#include "tests/harness/free_port.h"
#include "tests/tools/job_hosts.h"
#include "tests/tools/listening_sockets.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class KeelrunPorts : public ::testing::Test, protected JobHosts {
 protected:
  // Other tests may listen on some of these.
  const int first_ = FreePort();
  const int last_ = first_ + 40;
  const std::string range_ =
      "--port-range=" + std::to_string(first_) + "-" + std::to_string(last_);

  std::unique_ptr<Launched> StartWithin(const std::string& name) {
    return Start(name, {"--nnodes=1:2", "--max-restarts=9", range_,
                        "--rdzv-conf=last_call_timeout=0.2", "--no-python"},
                 {"sh", "-c", "echo up of=$WORLD_SIZE restarts=$TORCHELASTIC_RESTART_COUNT "
                              "port $MASTER_PORT pid $$$$ end; "
                              "while [ ! -e " + done_file() + " ]; do sleep 0.05; done"});
  }

  void ExpectWithin(const Launched& host, size_t at_least) const {
    const auto sockets = ListeningSockets(host.pid());
    EXPECT_GE(sockets.size(), at_least);
    for (const auto& [socket, given] : sockets) {
      if (given == port()) continue;
      EXPECT_GE(given, first_) << host.Output();
      EXPECT_LE(given, last_) << host.Output();
    }
  }
};

TEST_F(KeelrunPorts, AreOfTheRangeAlsoWhenTheBoardHasMoved) {
  const auto first = StartWithin("first");
  first->Await("^up of=1 ");
  ExpectWithin(*first, 3);   // the board, the presence of others, the epoch
  const auto second = StartWithin("second");
  const std::string up = first->Await("^up of=2 ");
  second->Await("^up of=2 ");
  ExpectWithin(*first, 3);
  ExpectWithin(*second, 1);
  SignalPidIn(up, SIGKILL);
  first->Await("^up of=2 restarts=1 ");
  // One that is not inside yet cannot tell whether the others are, and waits for them.
  second->Await("^up of=2 restarts=1 ");
  ExpectWithin(*first, 3);
  first->Kill();
  second->Await("board-opened");
  second->Await("^up of=1 ");
  ExpectWithin(*second, 3);
  LetFinish();
  EXPECT_EQ(second->ExitCode(), 0) << second->Output();
}

// Both doctors hold their two ports when they knock.
TEST_F(KeelrunPorts, TheDoctorListensAtBothEnds) {
  const auto look = [&](const std::string& name) {
    return Start(name, {"--doctor", "--doctor-limit=30s", "--nnodes=2", range_},
                 {"--no-python", "true"});
  };
  const auto one = look("one");
  std::set<uint16_t> ports;
  while (ports.size() < 3) {   // the store's, and those two
    for (const auto& [socket, given] : ListeningSockets(one->pid())) ports.insert(given);
  }
  ports.erase(port());
  EXPECT_LE(*ports.begin(), first_ + 20) << range_;
  EXPECT_GE(*ports.rbegin(), last_ - 20) << range_;
  const auto two = look("two");
  EXPECT_EQ(one->ExitCode(), 0) << one->Output();
  EXPECT_EQ(two->ExitCode(), 0) << two->Output();
  EXPECT_EQ(one->Count("^OK +ports +all reach each other"), 1) << one->Output();
}

TEST_F(KeelrunPorts, WhereAllAreTakenThatIsSaid) {
  std::vector<ListenSocket> taken;
  for (int port = first_; port < first_ + 8; ++port) {
    auto socket = ListenSocket::Listen("", static_cast<uint16_t>(port));
    if (socket.ok()) taken.push_back(*std::move(socket));   // else somebody else has it
  }
  const std::string range = std::to_string(first_) + "-" + std::to_string(first_ + 7);
  Launched job(folder(), "job", {"--standalone", "--port-range=" + range, "--no-python", "true"});
  EXPECT_EQ(job.ExitCode(), 1) << job.Output();
  EXPECT_THAT(job.Output(), HasSubstr("all ports of " + range + " are taken"));
}

}  // namespace
}  // namespace keel
