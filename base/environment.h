// The environment variables of a process, as a value that can be changed and handed to a child.
// Does not   follow later changes of this process's own environment: it is a copy.
// Threads    OwnEnvironment() must not run beside a setenv(), as any reader of the environment.
#pragma once

#include <map>
#include <string>

namespace keel {

using Environment = std::map<std::string, std::string>;

// What this process was given. Entries without '=' are left out.
Environment OwnEnvironment();

// Empty: it is not set, or to nothing.
std::string VariableOf(const Environment& environment, const std::string& name);

// `base` with the variables of `changes` added or replaced.
Environment With(Environment base, const Environment& changes);

}  // namespace keel
