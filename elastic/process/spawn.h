// Spawn: starts a program as a child that cannot outlive us and inherits nothing by accident.
// Promises   the child leads a session and process group of its own; gets SIGKILL when we die,
//            however we die; has every signal at its default and unblocked (even SIGPIPE); has no
//            open descriptor except those named in its spec. A program that cannot be executed is
//            an Error here, not an exit code later. It is safe beside other threads: between fork
//            and exec the child only makes async-signal-safe calls.
// Does not   reach what the child itself starts: a grandchild gets no SIGKILL when we die
//            (elastic/process/descendants.h). A set-user-ID program loses the tie to our death,
//            since the kernel clears it.
// Threads    any, but THE THREAD THAT SPAWNS MUST OUTLIVE THE CHILD: the kernel ties the child to
//            the thread, not to the process. A thread that ends too early is a checked bug
//            (elastic/process/child.h).
// Errors     kNotFound: no such program or folder; kInvalid: the spec, or a file that cannot be
//            run; kForeign: the system refused (no processes or descriptors left).
#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "elastic/process/child.h"

namespace keel {

// Where one of the three standard streams leads.
struct Stream {
  enum class Kind { kInherit, kNull, kFile, kFd };

  Kind kind = Kind::kInherit;
  std::string path;
  int fd = -1;

  static Stream Inherit() { return {}; }
  static Stream Null() { return {Kind::kNull, "/dev/null", -1}; }
  // Input reads it; output is appended, and creates the file if it is missing. Relative to our
  // folder, not the child's.
  static Stream File(std::string path) { return {Kind::kFile, std::move(path), -1}; }
  // Any descriptor, such as one end of a pipe. The caller owns it, and closes it after Spawn().
  static Stream Borrowed(const Fd& fd) { return {Kind::kFd, "", fd.number()}; }
};

// A stream as a descriptor of ours, for standard stream `target`: what is inherited is copied.
// kNotFound, kIo, kInvalid.
Result<Fd> OpenStream(const Stream& stream, int target);

// The child gets our descriptor `ours` under the number `theirs` (3 or more).
struct InheritedFd {
  int ours = -1;
  int theirs = -1;
};

struct ChildSpec {
  std::vector<std::string> argv;   // argv[0]: a path, or a name looked up in its PATH
  Environment environment;         // all of it; start from OwnEnvironment() to add to ours
  std::string working_dir;         // empty: ours
  Stream in = Stream::Null();
  Stream out;
  Stream err;
  std::vector<InheritedFd> fds;
  bool polite = false;             // until EndPoliteness() (elastic/process/politeness.h)
};

// Returns when the child is inside exec(), as soon as that can no longer fail.
Result<Child> Spawn(const ChildSpec& spec);

}  // namespace keel
