// The store module: c10d's store in a shared object of its own. A launcher can then start its
// workers before it loads LibTorch, which takes longer than all the rest of its start.
// Threads    the entry: any.
#pragma once

#include "base/log.h"
#include "store/store_maker.h"

namespace keel {

// Raise it whenever the classes that cross the border change: another version is refused.
inline constexpr int kStoreModuleVersion = 3;
inline constexpr const char* kStoreModuleEntry = "keel_store_module";
inline constexpr const char* kStoreModuleFile = "libkeel_store_module.so";

// The module has a log of its own, so it is told how to log. Returns null for another version, or
// if it cannot be used: then `problem` says why. Neither is to be freed.
using StoreModuleEntry = StoreMaker* (*)(int version, LogFormat format, LogLevel level,
                                         const char** problem);

}  // namespace keel
