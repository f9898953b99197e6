// Fills in what the Reducer's constructor wants, and sets its hook.
#include "trainer/exchange/pinned_reducer.h"

#include <algorithm>
#include <utility>

#include "store/torch_shim.h"

namespace keel {
namespace {

class Hooked final : public c10d::CommHookInterface {
 public:
  explicit Hooked(PinnedReducerSpec::Hook run) : run_(std::move(run)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return run_(bucket);
  }
  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  const PinnedReducerSpec::Hook run_;
};

}  // namespace

std::unique_ptr<PinnedReducer> OpenReducer(PinnedReducerSpec spec) {
  ReducerArguments arguments;
  arguments.parameters = std::move(spec.parameters);
  arguments.buckets = std::move(spec.buckets);
  // With a hook, the Reducer asks its group for nothing but the size.
  arguments.group = c10::make_intrusive<c10d::ProcessGroup>(spec.rank, spec.size);
  arguments.gradient_as_bucket_view = true;  // gradients are read where the sums arrive
  arguments.bucket_bytes_max = static_cast<int64_t>(spec.bucket_bytes_max);
  arguments.first_bucket_bytes_max = static_cast<int64_t>(spec.first_bucket_bytes_max);
  std::unique_ptr<PinnedReducer> reducer = MakeReducer<PinnedReducer>(std::move(arguments));
  reducer->register_comm_hook(std::make_unique<Hooked>(std::move(spec.hook)));
  reducer->Pin();
  return reducer;
}

std::vector<std::vector<size_t>> BucketsOf(const std::vector<at::Tensor>& parameters,
                                           size_t first_bytes_max, size_t bytes_max) {
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {first_bytes_max, bytes_max});
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

}  // namespace keel
