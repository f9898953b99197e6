// WriteFile, ReadFile: whole small files in one call, for tests that need them.
#pragma once

#include <string>

namespace keel {

// Replaces the file, and gives it `mode`. Not durable.
void WriteFile(const std::string& path, const std::string& text, int mode = 0644);
// The whole file; empty when it is not there.
std::string ReadFile(const std::string& path);

}  // namespace keel
