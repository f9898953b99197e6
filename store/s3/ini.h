// The user's AWS files (~/.aws/credentials, ~/.aws/config): sections of names and values.
// Promises   a section that stands twice is one; the later value of a name counts. Lines that are
//            none of these (and nested settings, which are indented) are passed over.
// Does not   read a file, or refuse one: what cannot be read is as if it were not there.
// Threads    any.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace keel {

// By section, then by name in lower case. "[ profile  x ]" is the section "profile x".
using IniSections = std::map<std::string, std::map<std::string, std::string>>;

IniSections ParseIni(std::string_view text);

}  // namespace keel
