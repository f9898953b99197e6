// MoveAside: takes a checkpoint of no use out of the way of the next save of its step, and tells.
// Threads    any.
#pragma once

#include <string>

#include "base/files.h"
#include "ckpt/catalog.h"

namespace keel {

// Whether it is out of the way. `hint`: what a reader of the log may want to know.
bool MoveAside(Files& files, const StepEntry& entry, const std::string& hint);

}  // namespace keel
