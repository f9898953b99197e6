// EtcdCluster: a real etcd cluster on this machine, for as long as this object lives.
// Promises   members on free ports of 127.0.0.1, with their data in memory (/dev/shm) if there is
//            some; all of them are started and have a leader once it is made. Its version is
//            printed once a program. A cluster that does not come up fails the test, with the
//            members' last words.
// Does not   survive the test process: the members get SIGKILL when it dies.
// Threads    one, which must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/process/child.h"
#include "store/etcd/access.h"
#include "store/etcd/client.h"
#include "tests/support/temp_dir.h"

namespace keel {

// Why no cluster can be started here, and what to do; empty: one can.
std::string WhyNoEtcd();

// Files that openssl makes for a test: an authority, and certificates that it has signed.
class TestCertificates {
 public:
  explicit TestCertificates(const std::string& name);

  const std::string& ca_file() const { return ca_; }
  // Signed for 127.0.0.1, both as a server and as a client.
  EtcdTls Signed() const;

 private:
  TempDir folder_;
  std::string ca_;
};

class EtcdCluster {
 public:
  struct Spec {
    int members = 3;
    // Elections take a quarter of the default time.
    bool is_quick = false;
    const TestCertificates* tls = nullptr;        // members want client certificates, too
    std::vector<std::string> arguments = {};      // more of them, for each member
  };
  explicit EtcdCluster(const Spec& spec);
  ~EtcdCluster();

  int size() const { return spec_.members; }
  EtcdAccess access() const;
  // With that member as the only endpoint.
  EtcdAccess AccessTo(int member) const;
  int IndexOf(const EtcdMember& member) const;

  // After SIGSTOP the member stands still when this returns.
  void Signal(int member, int signal);
  // SIGKILL, and waits for its end.
  void Kill(int member);
  // The same data and ports, after Kill().
  void Restart(int member);
  // Waits until that member answers and knows a leader.
  void AwaitReady(int member);
  // The leader that the members agree on; the dead ones do not count.
  int Leader();

  // What etcd itself says to a question at that member.
  Result<Json> Ask(int member, const std::string& path, const Json& question);
  // All keys below a prefix, as etcd itself lists them.
  std::vector<std::string> KeysBelow(const std::string& prefix);
  // Makes the user root with this password and turns authentication on. Later questions by Ask()
  // come from root.
  void EnableUsers(const std::string& password);

 private:
  std::string Url(uint16_t port) const;
  void Start(int member);
  std::string LastWords(int member) const;

  const Spec spec_;
  std::string folder_;
  std::vector<uint16_t> client_ports_;
  std::vector<uint16_t> peer_ports_;
  std::vector<std::optional<Child>> children_;
  std::string root_password_;
};

}  // namespace keel
