// The shim: what differs between LibTorch 2.6 and today, of all that our code uses.
// Promises   the rest of our code compiles unchanged against any LibTorch from 2.6 on. It asks the
//            compiler what exists, not the version number, since each release moved something.
// Does not   hide behaviour that differs: MakeGlooDevice() says whether it could be lazy.
#pragma once

#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#if __has_include(<torch/csrc/distributed/c10d/store/TCPStoreBackend.hpp>)  // from 2.14 on
#include <torch/csrc/distributed/c10d/store/TCPStoreBackend.hpp>
#else
#include <torch/csrc/distributed/c10d/TCPStoreBackend.hpp>
#endif

#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace keel {

// What holds a node of autograd's graph: a std::shared_ptr, and from 2.13 on a c10::intrusive_ptr.
using AutogradNode =
    decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

struct ReducerArguments {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<size_t>> buckets;  // indices into `parameters`
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  int64_t bucket_bytes_max = 25 << 20;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  int64_t first_bucket_bytes_max = 1 << 20;
};

// `Kind` is c10d::Reducer or a class derived from it that inherits its constructors.
template <class Kind>
std::unique_ptr<Kind> MakeReducer(ReducerArguments a) {
  const std::vector<bool> sparse(a.parameters.size(), false);
  const std::unordered_map<size_t, std::string> names;
  using Parameters = std::vector<at::Tensor>;
  using Buckets = std::vector<std::vector<size_t>>;
  using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
  using Names = std::unordered_map<size_t, std::string>;
  if constexpr (std::is_constructible_v<Kind, Parameters, Buckets, Group, std::vector<bool>,
                                        int64_t, bool, bool, Names, int64_t, bool, bool,
                                        std::vector<int64_t>>) {  // 2.11; later ones have defaults
    return std::make_unique<Kind>(std::move(a.parameters), std::move(a.buckets),
                                  std::move(a.group), sparse, a.bucket_bytes_max,
                                  a.find_unused_parameters, a.gradient_as_bucket_view, names,
                                  a.first_bucket_bytes_max, false, false, std::vector<int64_t>{});
  } else if constexpr (std::is_constructible_v<Kind, Parameters, Buckets, Group, std::vector<bool>,
                                               int64_t, bool, bool, Names, int64_t, bool, bool>) {
    return std::make_unique<Kind>(std::move(a.parameters), std::move(a.buckets),
                                  std::move(a.group), sparse, a.bucket_bytes_max,
                                  a.find_unused_parameters, a.gradient_as_bucket_view, names,
                                  a.first_bucket_bytes_max, false, false);
  } else if constexpr (std::is_constructible_v<Kind, Parameters, Buckets, Group, std::vector<bool>,
                                               int64_t, bool, bool, Names, int64_t, bool>) {
    return std::make_unique<Kind>(std::move(a.parameters), std::move(a.buckets),
                                  std::move(a.group), sparse, a.bucket_bytes_max,
                                  a.find_unused_parameters, a.gradient_as_bucket_view, names,
                                  a.first_bucket_bytes_max, false);
  } else if constexpr (std::is_constructible_v<Kind, Parameters, Buckets, Group, std::vector<bool>,
                                               int64_t, bool, bool, Names, int64_t>) {  // 2.7
    return std::make_unique<Kind>(std::move(a.parameters), std::move(a.buckets),
                                  std::move(a.group), sparse, a.bucket_bytes_max,
                                  a.find_unused_parameters, a.gradient_as_bucket_view, names,
                                  a.first_bucket_bytes_max);
  } else {  // 2.6 also wanted a limit for each bucket, for its own log only
    const std::vector<size_t> limits(a.buckets.size(), static_cast<size_t>(a.bucket_bytes_max));
    return std::make_unique<Kind>(std::move(a.parameters), std::move(a.buckets), limits,
                                  std::move(a.group), sparse, a.bucket_bytes_max,
                                  a.find_unused_parameters, a.gradient_as_bucket_view, names,
                                  a.first_bucket_bytes_max);
  }
}

struct GlooDevice {
  std::shared_ptr<::gloo::transport::Device> device;
  bool lazy = false;  // connects a pair at its first use, not when the group is made
};

// CUDA's own handle of a stream. Before 2.11 nothing tells it without CUDA's headers.
template <class Stream>
void* NativeHandleOf(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    TORCH_CHECK(false, "training on a GPU takes PyTorch 2.11 or newer");
  }
}

// These are templates only so that a form that this LibTorch lacks is not compiled.
template <class Gloo = c10d::ProcessGroupGloo>
GlooDevice MakeGlooDevice(const std::string& number, bool lazy) {
  if constexpr (requires { Gloo::createDeviceForHostname(number, lazy); }) {
    return {Gloo::createDeviceForHostname(number, lazy), lazy};
  } else {
    return {Gloo::createDeviceForHostname(number), false};
  }
}

}  // namespace keel
