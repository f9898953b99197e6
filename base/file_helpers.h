// What most users of Files want: whole small files, and directories made with their parents.
// Promises   WriteDurably(), also in a bucket: whoever reads `path` afterwards, also after power
//            loss, finds the old or the new content whole; once it returned Ok, the new one.
// Does not   guard against two writers of one path at a time: they would share its temporary file.
// Threads    any, on different paths.
// Errors     those of base/files.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"

namespace keel {

// What WriteDurably() writes to before the content has its name; a leftover means nothing.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

std::span<const std::byte> BytesOf(std::string_view text);

// "a/b" of "a/b/c", "." of "c", "/" of "/c".
std::string ParentDir(std::string_view path);
// "a/b" of "a" and "b"; of "a/" and "b" too.
std::string JoinPath(std::string_view dir, std::string_view name);

Result<bool> Exists(Files& files, const std::string& path);

// kInvalid where the file holds more than `limit_bytes`.
Result<std::string> ReadWhole(Files& files, const std::string& path, uint64_t limit_bytes);

// Temporary file, sync, rename, sync of the directory. After an error the temporary file is
// removed where that is possible, and the old content stands, unless the error came from the last
// sync: then either may be there after power loss.
Status WriteDurably(Files& files, const std::string& path, std::string_view content);

// Makes `path` and what is missing above it, and syncs the parent of each made directory. An
// earlier maker of `path` may have died before its own sync: its parent is synced if it can be, for
// it may be a directory of others that we may only pass through.
Status MakeDirs(Files& files, const std::string& path);

}  // namespace keel
