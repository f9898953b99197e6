// What is saved where, how often and how; and what an epoch adds to that.
// Threads    plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "ckpt/frame.h"
#include "ckpt/retention.h"
#include "trainer/numerics/run_config.h"

namespace keel {

// How all of a group save: a save that one begins and others do not would never end.
struct SaveTerms {
  uint64_t every_steps = 0;
  Codec codec = Codec::kPlanes;

  bool operator==(const SaveTerms&) const = default;
  // "--save-every 10, --codec planes"
  std::string Text() const;
};

struct CheckpointConfig {
  std::string root = {};         // empty: nothing is saved
  std::string mirror = {};       // where it is copied to; empty: nowhere
  bool unguarded = false;        // also in a store that ignores conditions
  uint64_t every_steps = 0;      // 0: not by steps
  Duration every_time{0};        // 0: not by the clock
  Codec codec = Codec::kPlanes;
  RetentionPolicy retention = {};
  std::string fingerprint = {};  // of this worker
  std::string job = {};          // its name
  std::string lease = {};        // the folder of its lease; empty: it has none
  SavedConfig config = {};       // of this worker

  bool saves() const { return !root.empty(); }
};

// What the epoch gives: this worker's place in it, and what rank 0 says for all.
struct SavePlace {
  int64_t epoch = 0;                     // its number; 0: there is no supervisor
  int rank = 0;
  int world = 1;
  std::string prefix;                    // of the group's keys in the store
  std::string fingerprint;               // of rank 0, for all to write the same
  SavedConfig config = {};               // likewise
  std::optional<SaveTerms> terms = {};   // likewise; nothing: this worker's own
};

// While the disk is waited for, by a worker that others may be waiting for.
struct DiskWaiting {
  // Called now and then, if the disk gets on or may do so yet.
  std::function<void()> tick = [] {};
  // An error ends the wait, and is what comes of it.
  std::function<Status()> look = [] { return Ok(); };
};

}  // namespace keel
