// JsonFaults: what a reader of JSON says to each text that is almost one that it takes.
// Promises   a line for each member, also of objects within and of the first object in an array:
//            what the reader says where it is missing, and where it is null; "@" is "field
//            'name'", and "taken" for a text that is taken. A whole number has a line more for each
//            end of 64 bits. The last lines are what a further member does, and in which order the
//            members are read.
// Threads    pure functions.
#pragma once

#include <functional>
#include <string>

namespace keel {

// The error's text; empty where the text is taken.
using JsonReaderUnderTest = std::function<std::string(const std::string&)>;

// `text` is one that is taken.
std::string JsonFaults(const std::string& text, const JsonReaderUnderTest& read);

}  // namespace keel
