// PutIfAbsent: a small file that appears under a name whole, once, and for one writer only.
//
// What is put is a directory NAME that holds one file. It is written and synced under a name of its
// writer's own, then renamed to NAME. rename(2) is one step on the server, also with NFSv3, and it
// replaces no directory that holds anything: so of several writers one succeeds, with all its
// bytes, and a reader finds all or nothing. A file made with O_EXCL would be atomic as well, but it
// is empty at first, and stays so if its maker dies; a hard link would do, where there are any.
//
// Promises   of all puts of one name that is not removed, one succeeds. What was put survives the
//            loss of power once Ok came. A writer that dies leaves nothing under NAME; what it
//            leaves beside it has the writer's name, and means nothing.
// Does not   tell which writer it was that succeeded: its bytes must. After an error other than
//            kExists it may have succeeded all the same, as when an answer of NFS was lost.
// Threads    any. Errors: kExists, and those of base/files.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/random.h"

namespace keel {

struct PutPlace {
  std::string folder;   // is there, and is empty at first
  std::string name;
  std::string writer;   // of one who puts or removes there; no other one's
};

Status PutIfAbsent(Files& files, const PutPlace& place, std::string_view bytes);

// kNotFound: nothing was put under that name, or it is damaged. kInvalid: it is longer.
Result<std::string> ReadPut(Files& files, const std::string& folder, const std::string& name,
                            uint64_t limit_bytes);

// What was put, or is a leftover. At no moment is there a directory of that name that is empty,
// which a put could replace.
Status RemovePut(Files& files, const PutPlace& place);

// The name that a writer was putting to or removing, if this is one that it uses on its way; else
// nothing. Without its writer, it is a leftover, which RemovePut() removes.
std::optional<std::string> NameOnTheWay(std::string_view name);

// Puts twice under one new name. kInvalid: both succeeded, or it cannot be read back.
Status ProbePutIfAbsent(Files& files, const std::string& folder, Random& random);

}  // namespace keel
