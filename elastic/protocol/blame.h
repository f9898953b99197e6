// HostBlame: what speaks for and against a host: how its workers died, and how their results and
// their speed compare with those of others. Over all lives of its workers.
// Does not   decide anything: whoever looks for the reason of trouble reads it.
// Threads    a plain value.
#pragma once

#include <cstdint>

namespace keel {

// Of one worker, so far.
struct WorkerChecks {
  // Lanes that it and another one both computed, and sums that both added, where these differed.
  int64_t rechecks = 0;
  int64_t differences = 0;   // of these they came to different results
  int64_t slow_steps = 0;    // in which it was half as slow again as most, and by 1 ms a lane
  bool operator==(const WorkerChecks&) const = default;
};

struct HostBlame {
  // Deaths, by cause.
  int64_t exited = 0;        // with a code
  int64_t signalled = 0;     // by somebody else's signal, or the kernel's
  int64_t ended = 0;         // by its launcher, since it hung or was late
  int64_t lost_device = 0;   // since its GPU was lost
  int64_t not_started = 0;
  WorkerChecks checks = {};
  bool operator==(const HostBlame&) const = default;
};

// A death's cause: a member of HostBlame, and what it is called for people and for programs.
struct DeathCause {
  int64_t HostBlame::*count;
  const char* words;
  const char* name;
};
inline constexpr DeathCause kDeathCauses[] = {
    {&HostBlame::exited, "exited with a code", "exited"},
    {&HostBlame::signalled, "killed by a signal", "signalled"},
    {&HostBlame::ended, "ended by the launcher", "ended"},
    {&HostBlame::lost_device, "lost their GPU", "lost_device"},
    {&HostBlame::not_started, "not started", "not_started"},
};

}  // namespace keel
