// The job's token: a secret that all its launchers are given, from a file or the environment, and
// never on the command line.
// Promises   nothing says it again: neither an error nor the log.
// Threads    any. Errors: kInvalid: it is too short, or given twice; those of the file; kNotFound:
//            this machine cannot make seals.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/environment.h"
#include "base/files.h"
#include "base/result.h"
#include "elastic/launch/config.h"
#include "elastic/protocol/board_keys.h"
#include "store/seal/seal.h"

namespace keel {

inline constexpr const char* kTokenVariable = "KEELRUN_TOKEN";
// That of --token-file.
inline constexpr const char* kTokenFileVariable = "KEELRUN_TOKEN_FILE";

// Of this job and token. Nothing: the job has no token.
Result<std::optional<Seal>> ReadJobSeal(Files& files, const LaunchConfig& config,
                                        const Environment& environment);

// What the stores of the job are sealed with, and the keys of a store that launchers of other jobs
// must be able to read.
inline Seal SealOfStores(const Seal& job) { return job.For({"store"}); }
inline std::set<std::string> OpenKeys() { return {kKeeperKey}; }

}  // namespace keel
