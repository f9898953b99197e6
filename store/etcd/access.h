// EtcdAccess: where an etcd cluster is, and with which certificates and user it is reached.
// Promises   an endpoint list reads as "h1:2379,h2,[2001:db8::3]:2379"; an error names what is
//            refused.
// Does not   look names up or read files; both happen at each new connection.
// Threads    a plain value. Errors: kInvalid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace keel {

// The limit of one attempt at one member; then the next member is asked. A cluster may be slower:
// after each round in which a member gave no answer the limit is twice as long, up to the most.
inline constexpr Duration kEtcdAttemptLimit = std::chrono::milliseconds(500);
inline constexpr Duration kEtcdAttemptLimitMost = std::chrono::seconds(2);
inline constexpr uint16_t kEtcdPort = 2379;

struct EtcdMember {
  std::string host;
  uint16_t port = kEtcdPort;
  bool operator==(const EtcdMember&) const = default;
};

// Files are read anew for each connection, so that renewed certificates are picked up.
struct EtcdTls {
  std::string ca_file;     // empty: the authorities that the system trusts
  std::string cert_file;   // empty: no client certificate
  std::string key_file;
};

struct EtcdAccess {
  std::vector<EtcdMember> members;
  std::optional<EtcdTls> tls = {};
  std::string user = {};       // empty: the cluster has no users
  std::string password = {};
};

Result<std::vector<EtcdMember>> ParseEtcdMembers(const std::string& text);

// "10.0.0.1:2379"
std::string EtcdMemberText(const EtcdMember& member);
// "the etcd cluster at 10.0.0.1:2379, 10.0.0.2:2379"
std::string EtcdClusterText(const EtcdAccess& access);

}  // namespace keel
