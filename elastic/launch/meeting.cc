// Torchrun's rules: number 0 keeps the store, or the first launcher on the host that owns the
// endpoint's address.
#include "elastic/launch/meeting.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "elastic/process/proc_file.h"
#include "store/own_address.h"
#include "store/reach.h"
#include "store/resolve.h"

namespace keel {
namespace {

constexpr Duration kLookUpLimit = std::chrono::seconds(10);
constexpr Duration kLookUpPause = std::chrono::milliseconds(500);
constexpr Duration kLastLookLimit = std::chrono::milliseconds(300);

std::string FirstOutside() {
  for (const std::string& address : OwnAddresses()) {
    if (!IsLoopback(address) && !address.starts_with("fe80:")) return address;
  }
  return "127.0.0.1";
}

// `number`: the endpoint's; empty if it is unknown, as some containers cannot resolve their own
// name, and the name of a pod is known only some time after it has begun.
bool IsOurs(const std::string& host, const std::string& number, const std::string& local) {
  const std::string own_name = OwnHostName();
  if (number.empty()) return host == own_name || host.starts_with(own_name + ".");
  // Each launcher of one machine may have a loopback address of its own.
  if (IsLoopback(number) && IsLoopback(local)) return number == local;
  const std::vector<std::string> own = OwnAddresses();
  return IsLoopback(number) || std::find(own.begin(), own.end(), number) != own.end();
}

// Of a name with several addresses the first board is kept by whoever has them all: a machine with
// several interfaces, and not one of many machines that share the name.
Result<std::string> OwnOf(const Result<std::vector<std::string>>& numbers) {
  if (!numbers.ok()) return numbers.error();
  const std::vector<std::string> own = OwnAddresses();
  for (const std::string& number : *numbers) {
    const bool is_own = std::find(own.begin(), own.end(), number) != own.end();
    if (numbers->size() > 1 && !is_own) return number;
  }
  return numbers->front();
}

bool MayHost(const LaunchConfig& config, const std::string& number, const std::string& local) {
  if (config.meeting == LaunchConfig::Meeting::kStandalone) return true;
  return config.is_store_host.value_or(IsOurs(config.endpoint_host, number, local));
}

// If the port is taken on our own host, another launcher of the job was first, unless we were told
// that we are to host the store.
bool MayJoinInstead(const LaunchConfig& config, const Error& error) {
  return error.code == Code::kExists && !config.is_store_host &&
         config.meeting == LaunchConfig::Meeting::kElastic;
}

// In numbers, what the user says of where others reach us; empty: nothing. A pod's own name is
// known only some time after it has begun, and a name service may fail once.
Result<std::string> GivenAddress(const LaunchConfig& config) {
  if (config.local_address.empty()) return std::string();
  const TimePoint end = RealClock().Monotonic() + kLookUpLimit;
  for (;;) {
    const Duration left = end - RealClock().Monotonic();
    Result<std::string> number = ResolveHost(config.local_address, left);
    if (number.ok()) return number;
    if (left <= kLookUpPause) {
      return Error{Code::kInvalid, "option '--local-addr': " + number.error().message};
    }
    RealClock().SleepFor(kLookUpPause);
  }
}

std::string ChooseAddress(const LaunchConfig& config, const std::string& given,
                          const std::string& number) {
  if (!given.empty()) return given;
  const bool alone = config.hosts.most == 1;
  if (IsLoopback(number)) {
    // Some hosts' own names lead to 127.0.1.1, which the others would take for themselves.
    const bool named_so = config.endpoint_host == number || config.endpoint_host == "localhost";
    return alone || named_so ? number : FirstOutside();
  }
  const std::string towards = number.empty() ? "" : OwnAddressTowards(number);
  return towards.empty() ? FirstOutside() : towards;
}

// The binding of a launcher that was given an address of its own.
std::string BindingFrom(const std::string& given) {
  if (given.empty()) return "";
  const std::vector<std::string> own = OwnAddresses();
  // Behind a translation of addresses it is not one of the machine's.
  const bool is_own = IsLoopback(given) || std::find(own.begin(), own.end(), given) != own.end();
  return is_own ? given : "";
}

}  // namespace

std::string WhyUnreachable(const Meeting& meeting, bool coordinates, const std::string& told) {
  if (coordinates) {
    return (told.empty() ? "this host keeps the store, but could not open it in that time" : told) +
           "; is the machine too busy for so short a limit?";
  }
  if (meeting.host.empty()) {
    return (told.empty() ? "the job's lease has not led to a board" : told) +
           "; check that all hosts name the same directory, and that they reach each other";
  }
  const auto look = [&]() -> Status {
    KEEL_TRY_ASSIGN(const std::string number, ResolveHost(meeting.host, kLastLookLimit));
    return AwaitListener(number, meeting.port, kLastLookLimit);
  };
  const Status found = look();
  const std::string heard =
      !told.empty() ? told
                    : "something listens there, but has not answered as the store of this job";
  return (found.ok() ? heard : found.error().message) +
         "; check that the first host has been started, with the same endpoint and job id, that "
         "the host name and port are its own, and that no firewall is in between";
}

Result<Meeting> OpenMeeting(const LaunchConfig& config, StoreMaker& stores) {
  Meeting meeting;
  meeting.own_name = OwnHostName();
  meeting.own_machine = Trim(ReadProcFile("/proc/sys/kernel/random/boot_id").value_or(""));
  KEEL_TRY_ASSIGN(const std::string given, GivenAddress(config));
  meeting.bind = BindingFrom(given);
  if (config.meets_by_lease) {   // whoever has the lease of the job says where it is
    meeting.own_address = ChooseAddress(config, given, "");
    return meeting;
  }
  meeting.host = config.endpoint_host;
  meeting.port = config.endpoint_port;
  const auto numbers = ResolveAll(config.endpoint_host, kLookUpLimit);
  const Result<std::string> number = OwnOf(numbers);
  const bool is_fixed = config.meeting == LaunchConfig::Meeting::kStatic;   // or nobody asks
  meeting.is_name_known =
      number.ok() && (!is_fixed || IsHostKnown(config.endpoint_host, kLookUpLimit));
  if (config.meeting == LaunchConfig::Meeting::kEtcd) {   // no host keeps anything there
    // A proxy of etcd on each host's loopback says nothing of how the hosts reach each other.
    const bool is_outside = number.ok() && !IsLoopback(*number);
    meeting.own_address = ChooseAddress(config, given, is_outside ? *number : "");
    return meeting;
  }
  if (MayHost(config, number.ok() ? *number : "", meeting.bind)) {
    // Where the endpoint is another address of this host, the first board is reached at both.
    const bool is_there = number.ok() && *number == meeting.bind;
    const std::string bind = is_there ? meeting.bind : "";
    Result<std::unique_ptr<StoreServer>> server = stores.Serve(bind, config.endpoint_port);
    if (server.ok()) {
      meeting.server = *std::move(server);
      meeting.port = meeting.server->port();
      meeting.host = bind.empty() ? "127.0.0.1" : bind;
      meeting.store_bind = bind;
    } else if (!MayJoinInstead(config, server.error())) {
      return server.error();
    }
  }
  if (meeting.port == 0) {
    return Error{Code::kInvalid, "the endpoint " + config.endpoint_host +
                                     " needs a port, since another host keeps the store there"};
  }
  // On the endpoint's own machine that port is for whoever is to keep the store.
  const std::string endpoint = number.ok() ? *number : "";
  const bool has_address = !meeting.bind.empty() && meeting.bind != endpoint;
  if (has_address || !IsOurs(config.endpoint_host, endpoint, meeting.bind)) {
    meeting.peer_port = meeting.port;
  }
  meeting.own_address = ChooseAddress(config, given, number.ok() ? *number : "");
  return meeting;
}

}  // namespace keel
