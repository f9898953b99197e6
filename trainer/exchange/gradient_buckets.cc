// Fills buckets from the first parameter on, and turns their order round.
#include "trainer/exchange/gradient_buckets.h"

#include <algorithm>
#include <map>
#include <utility>

namespace keel {
namespace {

using Members = std::vector<size_t>;   // indices of parameters

// Of one type, on one device.
struct Filling {
  Members members;
  size_t bytes = 0;
  bool is_first = true;
};

std::vector<Members> MembersOf(const std::vector<at::Tensor>& parameters,
                               const BucketLimits& limits) {
  std::map<std::pair<at::ScalarType, std::string>, Filling> kinds;
  std::vector<Members> all;
  const auto close = [&](Filling& filling) {
    all.push_back(std::exchange(filling.members, {}));
    filling.bytes = 0;
    filling.is_first = false;
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    Filling& filling = kinds[{parameter.scalar_type(), parameter.device().str()}];
    filling.members.push_back(i);
    filling.bytes += parameter.nbytes();
    if (filling.bytes >= (filling.is_first ? limits.last_bytes : limits.most_bytes)) {
      close(filling);
    }
  }
  for (auto& [kind, filling] : kinds) {
    if (!filling.members.empty()) close(filling);
  }
  std::sort(all.begin(), all.end(), [](const Members& one, const Members& other) {
    return one.front() > other.front();
  });
  return all;
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<at::Tensor> parameters, const BucketLimits& limits)
    : parameters_(std::move(parameters)), seats_(parameters_.size()) {
  for (const Members& members : MembersOf(parameters_, limits)) {
    std::vector<at::Tensor> own;
    int64_t elements = 0;
    for (const size_t parameter : members) {
      seats_[parameter] = {buckets_.size(), own.size()};
      own.push_back(parameters_[parameter]);
      elements += own.back().numel();
    }
    const auto options = own.front().options().requires_grad(false);
    buckets_.push_back(
        std::make_unique<ExchangeBucket>(std::move(own), at::empty({elements}, options)));
  }
}

}  // namespace keel
