// The endpoint list of an etcd cluster.
#include "store/etcd/access.h"

#include <algorithm>

#include "base/text.h"
#include "store/host_port.h"

namespace keel {

Result<std::vector<EtcdMember>> ParseEtcdMembers(const std::string& text) {
  std::vector<EtcdMember> members;
  for (const std::string& part : SplitList(text)) {
    if (part.find("://") != std::string::npos) {
      return MustBe(part, "HOST[:PORT] without a scheme; TLS is chosen by giving a CA file");
    }
    KEEL_TRY_ASSIGN(const HostPort endpoint, ParseEndpoint(part));
    const EtcdMember member{endpoint.host, endpoint.port.value_or(kEtcdPort)};
    if (member.port == 0) return MustBe(part, "HOST[:PORT] with a port from 1 to 65535");
    if (std::find(members.begin(), members.end(), member) == members.end()) {
      members.push_back(member);
    }
  }
  if (members.empty()) return MustBe(text, "the members of an etcd cluster: HOST[:PORT],...");
  return members;
}

std::string EtcdMemberText(const EtcdMember& member) {
  return AddressText(member.host, member.port);
}

std::string EtcdClusterText(const EtcdAccess& access) {
  std::vector<std::string> members;
  for (const EtcdMember& member : access.members) members.push_back(EtcdMemberText(member));
  return "the etcd cluster at " + JoinList(members, ", ");
}

}  // namespace keel
