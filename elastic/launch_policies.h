// From what the launcher was told to what each part of it keeps to.
// Threads    pure functions.
#pragma once

#include "elastic/coordinator.h"
#include "elastic/host.h"
#include "elastic/launch_config.h"
#include "elastic/meeting.h"
#include "elastic/member.h"

namespace keel {

HostConfig HostConfigFrom(const LaunchConfig& config, const Meeting& meeting,
                          const std::string& incarnation);
MemberConfig MemberConfigFrom(const LaunchConfig& config);
JobPolicy JobPolicyFrom(const LaunchConfig& config);

}  // namespace keel
