// EtcdValues: what a launcher is told about its etcd cluster, by torchrun's names.
// Promises   names and passwords of users come from the environment alone: other users of a machine
//            can read a command line.
// Does not   read the files, or reach the cluster.
// Threads    any. Errors: kInvalid.
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "elastic/launch/config.h"

namespace keel {

inline constexpr uint16_t kEtcdEndpointPort = 2379;   // if no other is given
inline constexpr const char* kEtcdUserVariable = "KEEL_ETCD_USER";
inline constexpr const char* kEtcdPasswordVariable = "KEEL_ETCD_PASSWORD";

// The keys of --rdzv-conf that only etcd has.
const std::vector<std::string>& EtcdKeysOfConf();
// `key` is one of them.
Status TakeEtcdValue(const std::string& key, const std::string& value, LaunchConfig::Etcd& etcd);
// Takes the user from the environment. Refuses what does not fit together.
Status CompleteEtcd(const Environment& environment, LaunchConfig::Etcd& etcd);

}  // namespace keel
