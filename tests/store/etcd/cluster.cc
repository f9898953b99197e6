// Starts, signals and asks members of a cluster.
#include "tests/store/etcd/cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/filesystem.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "elastic/process/spawn.h"
#include "store/etcd/messages.h"
#include "tests/harness/expect_ok.h"
#include "tests/harness/free_port.h"
#include "tests/support/file_text.h"

namespace keel {
namespace {

const Duration kReadyLimit = std::chrono::seconds(60);
const Duration kLook = std::chrono::milliseconds(20);
constexpr size_t kLastWordsBytes = 2000;

// Runs a program to its end and gives all it printed; empty: there is no such program.
std::optional<std::string> OutputOf(const std::vector<std::string>& argv) {
  const TempDir folder;
  ChildSpec spec;
  spec.argv = argv;
  spec.environment = OwnEnvironment();
  spec.out = Stream::File(folder.File("out"));
  spec.err = Stream::File(folder.File("err"));
  const Result<Child> child = Spawn(spec);
  if (!child.ok()) return std::nullopt;
  const auto status = child->Wait(RealClock().Monotonic() + kReadyLimit);
  EXPECT_TRUE(status.ok() && status->ok()) << argv[0] << ": " << ReadFile(folder.File("err"));
  return ReadFile(folder.File("out"));
}

std::string FolderInMemory() {
  std::string path = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  path += "/keel-etcd-XXXXXX";
  const bool made = mkdtemp(path.data()) != nullptr;
  KEEL_CHECK(made, "making " << path << ": " << std::strerror(errno));
  return path;
}

const std::optional<std::string>& Version() {
  static const std::optional<std::string> version = [] {
    std::optional<std::string> text = OutputOf({"etcd", "--version"});
    if (text) std::printf("%s\n", text->substr(0, text->find('\n')).c_str());
    return text;
  }();
  return version;
}

}  // namespace

std::string WhyNoEtcd() {
  if (!Version()) return "etcd is not installed here: apt-get install etcd-server";
  const bool is_old = Version()->find("Version: 3.3") != std::string::npos;
  return is_old ? "etcd 3.3 has no gateway at /v3; 3.4 or newer is needed" : "";
}

TestCertificates::TestCertificates(const std::string& name) : ca_(folder_.File("ca.pem")) {
  const std::vector<std::string> make = {
      "openssl", "req",      "-x509", "-newkey", "ec",     "-pkeyopt", "ec_paramgen_curve:P-256",
      "-nodes",  "-days",    "30",    "-subj"};
  std::vector<std::string> authority = make;
  authority.insert(authority.end(),
                   {"/CN=" + name, "-keyout", folder_.File("ca.key"), "-out", ca_});
  OutputOf(authority);
  std::vector<std::string> signed_one = make;
  signed_one.insert(signed_one.end(),
                    {"/O=" + name, "-keyout", folder_.File("own.key"), "-out",
                     folder_.File("own.pem"), "-CA", ca_, "-CAkey", folder_.File("ca.key"),
                     "-addext", "subjectAltName=IP:127.0.0.1", "-addext",
                     "basicConstraints=critical,CA:FALSE"});
  OutputOf(signed_one);
}

EtcdTls TestCertificates::Signed() const {
  return {ca_, folder_.File("own.pem"), folder_.File("own.key")};
}

EtcdCluster::EtcdCluster(const Spec& spec) : spec_(spec), folder_(FolderInMemory()) {
  for (int i = 0; i < size(); ++i) {
    client_ports_.push_back(FreePort());
    peer_ports_.push_back(FreePort());
    children_.emplace_back();
  }
  for (int i = 0; i < size(); ++i) Start(i);
  for (int i = 0; i < size(); ++i) AwaitReady(i);
}

EtcdCluster::~EtcdCluster() {
  children_.clear();
  boost::system::error_code failed;
  boost::filesystem::remove_all(folder_, failed);
}

std::string EtcdCluster::Url(uint16_t port) const {
  return (spec_.tls == nullptr ? "http" : "https") + std::string("://127.0.0.1:") +
         std::to_string(port);
}

void EtcdCluster::Start(int member) {
  const auto i = static_cast<size_t>(member);
  const auto peer = [&](size_t one) {
    return "http://127.0.0.1:" + std::to_string(peer_ports_[one]);
  };
  std::string all;
  for (size_t one = 0; one < peer_ports_.size(); ++one) {
    all += (one == 0 ? "m" : ",m") + std::to_string(one) + "=" + peer(one);
  }
  const std::string client = Url(client_ports_[i]);
  const std::string name = "m" + std::to_string(member);
  ChildSpec spec;
  spec.argv = {"etcd", "--name", name, "--data-dir", folder_ + "/" + name,
               "--listen-client-urls", client, "--advertise-client-urls", client,
               "--listen-peer-urls", peer(i), "--initial-advertise-peer-urls", peer(i),
               "--initial-cluster", all, "--logger", "zap", "--log-level", "warn"};
  if (spec_.is_quick) {
    spec.argv.insert(spec.argv.end(), {"--heartbeat-interval", "50", "--election-timeout", "250"});
  }
  if (spec_.tls != nullptr) {
    const EtcdTls files = spec_.tls->Signed();
    spec.argv.insert(spec.argv.end(), {"--cert-file", files.cert_file, "--key-file",
                                       files.key_file, "--trusted-ca-file", files.ca_file,
                                       "--client-cert-auth"});
  }
  spec.argv.insert(spec.argv.end(), spec_.arguments.begin(), spec_.arguments.end());
  spec.environment = OwnEnvironment();
  spec.out = Stream::File(folder_ + "/" + name + ".log");
  spec.err = Stream::File(folder_ + "/" + name + ".log");
  Result<Child> child = Spawn(spec);
  ASSERT_OK(child);
  children_[i].emplace(std::move(*child));
}

std::string EtcdCluster::LastWords(int member) const {
  const std::string all = ReadFile(folder_ + "/m" + std::to_string(member) + ".log");
  return all.substr(all.size() - std::min(all.size(), kLastWordsBytes));
}

EtcdAccess EtcdCluster::access() const {
  EtcdAccess access;
  for (const uint16_t port : client_ports_) access.members.push_back({"127.0.0.1", port});
  if (spec_.tls != nullptr) access.tls = spec_.tls->Signed();
  return access;
}

EtcdAccess EtcdCluster::AccessTo(int member) const {
  EtcdAccess access = this->access();
  access.members = {access.members[static_cast<size_t>(member)]};
  return access;
}

int EtcdCluster::IndexOf(const EtcdMember& member) const {
  for (int i = 0; i < size(); ++i) {
    if (client_ports_[static_cast<size_t>(i)] == member.port) return i;
  }
  ADD_FAILURE() << "no member has port " << member.port;
  return 0;
}

void EtcdCluster::Signal(int member, int signal) {
  Child& child = *children_[static_cast<size_t>(member)];
  EXPECT_OK(child.Signal(signal));
  if (signal != SIGSTOP) return;
  // Until the signal is taken, the process's other threads go on to answer.
  siginfo_t stopped{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &stopped, WSTOPPED | WNOWAIT), 0)
      << std::strerror(errno);
}

void EtcdCluster::Kill(int member) {
  std::optional<Child>& child = children_[static_cast<size_t>(member)];
  EXPECT_OK(child->Signal(SIGKILL));
  EXPECT_OK(child->Wait(RealClock().Monotonic() + kReadyLimit));
  child.reset();
}

void EtcdCluster::Restart(int member) { Start(member); }

void EtcdCluster::AwaitReady(int member) {
  const TimePoint end = RealClock().Monotonic() + kReadyLimit;
  for (;;) {
    const Result<Json> answer = Ask(member, "/v3/kv/range", {{"key", "YQ=="}});
    if (answer.ok()) return;
    if (RealClock().Monotonic() >= end) {
      ADD_FAILURE() << "member " << member << " did not come up: " << answer.error().message
                    << "\n" << LastWords(member);
      return;
    }
    RealClock().SleepFor(kLook);
  }
}

int EtcdCluster::Leader() {
  const TimePoint end = RealClock().Monotonic() + kReadyLimit;
  while (RealClock().Monotonic() < end) {
    for (int i = 0; i < size(); ++i) {
      if (!children_[static_cast<size_t>(i)]) continue;
      const Result<Json> status = Ask(i, "/v3/maintenance/status", Json::object());
      if (!status.ok()) continue;
      const std::string leader = status->value("leader", "0");
      if ((*status)["header"].value("member_id", "") == leader) return i;
    }
    RealClock().SleepFor(kLook);
  }
  ADD_FAILURE() << "no member leads";
  return 0;
}

Result<Json> EtcdCluster::Ask(int member, const std::string& path, const Json& question) {
  EtcdAccess access = AccessTo(member);
  if (!root_password_.empty()) {
    access.user = "root";
    access.password = root_password_;
  }
  return EtcdClient(access).Ask(path, question, std::chrono::seconds(5));
}

std::vector<std::string> EtcdCluster::KeysBelow(const std::string& prefix) {
  std::vector<std::string> keys;
  Json question = EtcdRangeQuestion(EtcdRange::Prefix(prefix));
  question["keys_only"] = true;
  const Result<Json> answer = Ask(Leader(), "/v3/kv/range", question);
  EXPECT_OK(answer);
  if (!answer.ok()) return keys;
  const Result<EtcdReply> reply = EtcdRangeReply(*answer);
  EXPECT_OK(reply);
  for (const EtcdKeyValue& found : reply->results[0]) keys.push_back(found.key);
  return keys;
}

void EtcdCluster::EnableUsers(const std::string& password) {
  // A question whose answer was lost, as when the leader changes, is asked again.
  const auto ask = [&](const std::string& path, const Json& question) {
    const Result<Json> answer = Ask(0, path, question);
    if (answer.ok() || answer.error().code == Code::kExists) return;
    ADD_FAILURE() << answer.error().message;
  };
  ask("/v3/auth/user/add", {{"name", "root"}, {"password", password}});
  ask("/v3/auth/role/add", {{"name", "root"}});
  EXPECT_OK(Ask(0, "/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}}));
  const bool is_enabled = Ask(0, "/v3/auth/enable", Json::object()).ok();
  root_password_ = password;
  if (!is_enabled) {
    EXPECT_OK(Ask(0, "/v3/auth/enable", Json::object()));
  }
}

}  // namespace keel
