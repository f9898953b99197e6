// KernelProbe: a digest of what a few small kernels give on this host for fixed inputs.
// Promises   two hosts whose matrix products, convolutions, their gradients, or elementary
//            functions differ in bits for these inputs give different digests, for whatever reason.
// Does not   prove that equal digests mean equal bits for all inputs.
// Threads    one. Errors: what LibTorch throws passes through.
#pragma once

#include <c10/core/Device.h>

#include "base/digest.h"
#include "trainer/precision.h"

namespace keel {

Digest KernelProbe(c10::Device device, Precision precision);

}  // namespace keel
