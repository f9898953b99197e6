// Device: where a program computes: the CPU, or for each worker a GPU of its own.
// Promises   gives what was asked for, or an error that says what is there instead: it never takes
//            another device in silence.
// Does not   move a model: the program does, before it makes the optimizer, and CheckDevice()
//            names what it forgot. It has never run on a GPU: it was only compiled, and run up to
//            the point where one is missing.
// Threads    OpenDevice() by the thread that trains; a new thread begins on CUDA's first GPU.
// Errors     kInvalid: no such word, or tensors elsewhere; kNoDevice: the GPU is not there.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <string_view>

#include "base/environment.h"
#include "base/result.h"
#include "trainer/tensors.h"

namespace keel {

// "cpu"; "cuda", the GPU whose number is this worker's LOCAL_RANK (0 without one); "cuda:2".
Result<c10::Device> ParseDevice(std::string_view text, const Environment& environment);

// Makes it the current device of this thread.
Status OpenDevice(c10::Device device);

// "NVIDIA H200"; "cpu". The device must have been opened.
Result<std::string> DeviceName(c10::Device device);

Status CheckDevice(const NamedTensors& tensors, c10::Device device);

}  // namespace keel
