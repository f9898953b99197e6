// The store module: c10d's store in a shared object of its own, so that a launcher need not load
// LibTorch, which takes longer than all the rest of its start, before it starts its workers.
// Threads    the entry: any.
#pragma once

#include "base/log.h"
#include "store/store_maker.h"

namespace keel {

// Raised whenever the classes that cross the border change: a module of another version is refused.
inline constexpr int kStoreModuleVersion = 2;
inline constexpr const char* kStoreModuleEntry = "keel_store_module";
inline constexpr const char* kStoreModuleFile = "libkeel_store_module.so";

// The module logs by itself, so it is told how. Null where it has another version; not to be freed.
using StoreModuleEntry = StoreMaker* (*)(int version, LogFormat format, LogLevel level);

}  // namespace keel
