// What a program's own command line says, as far as a launcher looks at it.
// Threads    pure functions.
#pragma once

#include <string>
#include <vector>

namespace keel {

// The value of "--name value" or "--name=value"; empty: it is not there.
std::string ValueInWords(const std::vector<std::string>& words, const std::string& name);
// Whether the flag --name is set: a later "--no-name" or "--name=false" takes it back.
bool IsInWords(const std::vector<std::string>& words, const std::string& name);

}  // namespace keel
