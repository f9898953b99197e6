// Makes c10d process groups: Gloo directly, NCCL through its module.
#include "trainer/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "base/process_setup.h"
#include "store/catch_torch.h"
#include "store/torch_shim.h"

namespace keel {
namespace {

std::chrono::milliseconds Millis(Duration limit) {
  return std::chrono::ceil<std::chrono::milliseconds>(limit);
}

std::string Doing(const char* kind, const GroupSpec& spec) {
  return std::string("building the ") + kind + " group '" + spec.prefix + "' as rank " +
         std::to_string(spec.rank) + " of " + std::to_string(spec.size);
}

Group WithBackend(const GroupSpec& spec, const c10::intrusive_ptr<c10d::Store>& store,
                  const c10::intrusive_ptr<c10d::Backend>& backend, c10::DeviceType device,
                  c10d::ProcessGroup::BackendType type) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, spec.rank, spec.size);
  group->setDefaultBackend(type);
  group->setBackend(device, type, backend);
  return group;
}

}  // namespace

Result<Group> MakeGlooGroup(const GroupSpec& spec) {
  IgnoreSigpipe();  // Gloo writes to sockets whose other end may have died a moment ago
  return CatchTorch(Doing("Gloo", spec), [&] {
    auto store = c10::make_intrusive<c10d::PrefixStore>(spec.prefix, spec.store);
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->timeout = Millis(spec.limit);
    options->devices.push_back(MakeGlooDevice(spec.address, /*lazy=*/false).device);
    auto backend =
        c10::make_intrusive<c10d::ProcessGroupGloo>(store, spec.rank, spec.size, options);
    return WithBackend(spec, store, backend, c10::DeviceType::CPU,
                       c10d::ProcessGroup::BackendType::GLOO);
  });
}

}  // namespace keel
