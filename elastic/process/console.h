// Console: one of our standard streams, for threads that must not block on it.
// Promises   each write() takes whole lines as far as 4096 bytes go, so a pipe does not mix them
//            with what others write. If a console takes nothing for a while, Write() waits only
//            until `give_up` is raised.
// Does not   keep what it could not write; close the stream.
// Threads    one at a time.
// If the stream can be opened anew without blocking (a pipe, a terminal) this never blocks.
// Otherwise it asks poll() before each piece, which a second writer can spoil.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "store/cancel.h"

namespace keel {

class Console {
 public:
  // `number`: the stream's descriptor, which stays the caller's.
  explicit Console(int number);

  // False if not all was written: it was given up, or the stream takes no more (closed, disk full).
  bool Write(std::string_view text, const CancelToken& give_up);
  // Of the last write: how much is missing, and if something is, why (an errno; 0: given up).
  size_t missed() const { return missed_; }
  int error() const { return error_; }

 private:
  int64_t WritePiece(std::string_view piece);

  const int number_;
  Fd own_;               // opened anew, not blocking
  bool is_socket_ = false;
  size_t missed_ = 0;
  int error_ = 0;
};

// Whether both descriptors are the same terminal.
bool IsOneTerminal(int a, int b);

}  // namespace keel
