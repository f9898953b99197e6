// What the stand-in's two halves share: a stream that can be given work.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace keel::standin {

void Enqueue(cudaStream_t stream, std::function<void()> work);

}  // namespace keel::standin
