// A process that holds a claim and keys in etcd until it is killed: HOST:PORT PREFIX.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "store/etcd/claims.h"
#include "store/etcd/etcd_store.h"

namespace {

constexpr std::chrono::seconds kTtl(2);
constexpr keel::Duration kLimit = std::chrono::seconds(20);

keel::Status Hold(const std::string& members, const std::string& prefix) {
  keel::EtcdAccess access;
  KEEL_TRY_ASSIGN(access.members, keel::ParseEtcdMembers(members));
  keel::EtcdClaims claims(access, prefix, kTtl, kLimit);
  KEEL_TRY_ASSIGN(const bool claimed, claims.Claim(1, "holder"));
  KEEL_TRY_ASSIGN(const auto lease, keel::EtcdLease::Grant(access, kTtl, kLimit));
  KEEL_TRY_ASSIGN(const auto store,
                  keel::EtcdStore::Open({.access = access, .prefix = prefix, .limit = kLimit,
                                         .lease = lease->id(), .fence = claims.fence()}));
  KEEL_TRY(store->Set("small", "x"));
  KEEL_TRY(store->Set("large", std::string(keel::kEtcdPartBytes + 1, 'x')));
  KEEL_TRY(store->Add("number", 1));
  std::printf("holding %d\n", claimed ? 1 : 0);
  std::fflush(stdout);
  pause();
  return keel::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const keel::Status held = Hold(argv[1], argv[2]);
  if (!held.ok()) std::fprintf(stderr, "%s\n", held.error().message.c_str());
  return held.ok() ? 0 : 1;
}
