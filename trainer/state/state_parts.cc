// By names: of the parameters whose name a state's begins with, the longest is its own.
#include "trainer/state/state_parts.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace keel {
namespace {

// Schedules and counters of a script, which the first step needs.
constexpr size_t kSmallBytes = 64 << 10;

std::optional<size_t> OwnerOf(std::string_view name,
                              const std::unordered_map<std::string, size_t>& parameters) {
  for (size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = name.rfind('.', dot - 1)) {
    const auto found = parameters.find(std::string(name.substr(0, dot)));
    if (found != parameters.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

uint64_t StatePart::bytes() const {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

std::optional<StateParts> PartsOf(const ModelTensors& model, const NamedTensors& optimizer,
                                  const NamedTensors& kept) {
  StateParts all;
  std::unordered_map<std::string, size_t> parameters;
  for (const NamedTensor& parameter : model.parameters) {
    parameters.emplace(parameter.name, all.parts.size());
    all.parts.push_back({{FlatAlias(parameter.tensor)}, all.parts.size()});
  }
  for (const NamedTensor& state : optimizer) {
    const std::optional<size_t> owner = OwnerOf(state.name, parameters);
    if (!owner) return std::nullopt;
    all.parts[*owner].tensors.push_back(FlatAlias(state.tensor));
  }
  for (const NamedTensor& frozen : model.frozen) {
    all.parts.push_back({{FlatAlias(frozen.tensor)}});
  }
  for (const NamedTensor& buffer : model.buffers) all.first.push_back(FlatAlias(buffer.tensor));
  for (const NamedTensor& one : kept) {
    all.parts.push_back({{FlatAlias(one.tensor)}});
    if (one.tensor.nbytes() <= kSmallBytes) all.first.push_back(FlatAlias(one.tensor));
  }
  return all;
}

}  // namespace keel
