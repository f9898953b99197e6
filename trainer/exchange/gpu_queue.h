// GpuQueue: a stream on a GPU on which an exchange enqueues its work.
// Does not   wait for anything, nor make anybody wait.
// Threads    one at a time.
// Errors     throws as ATen does: call it inside CatchTorch().
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace keel {

class GpuQueue {
 public:
  virtual ~GpuQueue() = default;

  // What comes now runs after all that the current stream has been given so far.
  virtual void FollowCurrentStream() = 0;
  // Whoever frees the tensor before the queue has done with it does not free its memory.
  virtual void Keep(const at::Tensor& tensor) = 0;
  // Makes tensors, and computes with those that were there before, at once for the caller.
  virtual void Now(const std::function<void()>& work) = 0;
  // Computes with what was enqueued before; `work` holds all that it uses.
  virtual void Then(std::function<void()> work) = 0;
  // CUDA's handle.
  virtual void* stream() = 0;
  // Whether all that was enqueued before the call is done.
  virtual std::function<bool()> Mark() = 0;
};

// On a stream of LibTorch's; on the stand-in's queue in its tests.
std::unique_ptr<GpuQueue> OpenGpuQueue(c10::Device device);

}  // namespace keel
