// PrintOut: what a program tells its user on stdout, printed so that nothing is lost in silence.
// Promises   all text of a call has left the process when the call returns, behind what stdio held
//            until then; or its loss is logged (`output-lost`, once) and stays what
//            OutputStatus() gives. Waits for a reader that is slow, also where somebody else has
//            made the descriptor non-blocking. A closed pipe is an error, and no death, where
//            IgnoreSigpipe() was called.
// Does not   decide what a loss means: a program asks OutputStatus() before it ends.
// Threads    any; the text of one call stays together.
// Errors     kPeerLost: nobody reads stdout any more; kNoSpace: its disk is full; kIo: it takes
//            nothing for another reason; each names the reason.
#pragma once

#include <string_view>

#include "base/result.h"

namespace keel {

// As printf().
__attribute__((format(printf, 1, 2))) void PrintOut(const char* format, ...);
// The same for a text, to a caller that reacts at once.
Status PrintOutText(std::string_view text);

// Ok where all that was printed has arrived: by these functions, or by stdio in whatever way. What
// stdio still holds is written first. Else the first loss.
Status OutputStatus();

}  // namespace keel
