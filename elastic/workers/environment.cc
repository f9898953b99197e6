// Writes and reads the six variables and their numbers.
#include "elastic/worker_environment.h"

#include <charconv>
#include <optional>

namespace keel {
namespace {

Result<int> Number(const Environment& environment, const std::string& name, int low, int high,
                   std::optional<int> otherwise = std::nullopt) {
  const auto found = environment.find(name);
  if (found == environment.end()) {
    if (otherwise) return *otherwise;
    return Error{Code::kInvalid, name + " is not set; start this program with keelrun or torchrun, "
                                        "or set it by hand"};
  }
  const std::string& text = found->second;
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < low || number > high) {
    return Error{Code::kInvalid, name + "='" + text + "' is not a whole number from " +
                                     std::to_string(low) + " to " + std::to_string(high)};
  }
  return number;
}

}  // namespace

Environment WorkerEnvironment::Variables() const {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world_size)},
          {"LOCAL_RANK", std::to_string(local_rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(local_world_size)},
          {"MASTER_ADDR", master_address},
          {"MASTER_PORT", std::to_string(master_port)}};
}

bool HasWorkerEnvironment(const Environment& environment) {
  return environment.count("RANK") > 0;
}

Result<WorkerEnvironment> ReadWorkerEnvironment(const Environment& environment) {
  constexpr int kPortMax = 65535;
  WorkerEnvironment worker;
  KEEL_TRY_ASSIGN(worker.world_size, Number(environment, "WORLD_SIZE", 1, kWorldSizeMax));
  KEEL_TRY_ASSIGN(worker.rank, Number(environment, "RANK", 0, worker.world_size - 1));
  KEEL_TRY_ASSIGN(worker.local_world_size,
                  Number(environment, "LOCAL_WORLD_SIZE", 1, worker.world_size, worker.world_size));
  KEEL_TRY_ASSIGN(worker.local_rank, Number(environment, "LOCAL_RANK", 0,
                                            worker.local_world_size - 1, worker.rank));
  KEEL_TRY_ASSIGN(const int port, Number(environment, "MASTER_PORT", 1, kPortMax));
  worker.master_port = static_cast<uint16_t>(port);
  const auto address = environment.find("MASTER_ADDR");
  if (address == environment.end() || address->second.empty()) {
    return Error{Code::kInvalid, "MASTER_ADDR is not set: it names the host that keeps the store"};
  }
  worker.master_address = address->second;
  return worker;
}

}  // namespace keel
