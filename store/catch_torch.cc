// The table from LibTorch's exceptions to our codes.
#include "store/catch_torch.h"

#include <c10/util/Exception.h>

#include <new>
#include <string_view>

namespace keel {
namespace {

bool Mentions(const std::string& text, const std::initializer_list<const char*>& words) {
  for (const char* word : words) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

Code CodeOfWords(const std::string& text, Code otherwise) {
  if (Mentions(text, {"imeout", "imed out", "IMEOUT"})) return Code::kTimeout;
  if (Mentions(text, {"Connection reset", "Connection closed", "Broken pipe", "got 0 bytes",
                      "Connection refused", "not connected"})) {
    return Code::kPeerLost;
  }
  // NCCL's errors when a peer is gone. Its other ones would come again in the next group.
  if (Mentions(text, {"remote process exited or there was a network error",
                      "unhandled system error (run with NCCL_DEBUG",
                      "internal error - please report this issue to the NCCL",
                      "NCCL communicator was aborted"})) {
    return Code::kPeerLost;
  }
  if (Mentions(text, {"No CUDA GPUs", "no CUDA-capable device", "CUDA driver version"})) {
    return Code::kNoDevice;
  }
  // After these, CUDA serves the process no more. Not after what a kernel of the program's asserts:
  // that is the program's fault.
  if (Mentions(text, {"CUDA error: an illegal memory access",
                      "CUDA error: unspecified launch failure",
                      "CUDA error: an illegal instruction", "CUDA error: misaligned address",
                      "CUDA error: uncorrectable ECC error", "CUDA error: hardware stack error",
                      "CUDA error: uncorrectable NVLink error",
                      "CUDA error: context is destroyed", "busy or unavailable"})) {
    return Code::kNoDevice;
  }
  return otherwise;
}

// c10d appends "Exception raised from ..." and a stack to its message; people need the first part.
// LibTorch's cure for an operation that is not deterministic is to allow it, which is none here.
std::string FirstPart(const std::string& text) {
  constexpr std::string_view kNot = " does not have a deterministic implementation";
  const size_t not_deterministic = text.find(kNot);
  if (not_deterministic != std::string::npos) {
    return text.substr(0, not_deterministic + kNot.size()) +
           ": its bits would differ from run to run; take another operation in its place "
           "(docs/gpu.md names some)";
  }
  const size_t end = text.find("\nException raised from");
  return end == std::string::npos ? text : text.substr(0, end);
}

}  // namespace

Error ErrorOfCurrentException(const std::string& doing) {
  Error error;
  try {
    throw;
  } catch (const c10::DistNetworkError& thrown) {
    error.message = FirstPart(thrown.what_without_backtrace());
    error.code = CodeOfWords(error.message, Code::kPeerLost);
  } catch (const c10::Error& thrown) {
    error.message = FirstPart(thrown.what_without_backtrace());
    error.code = CodeOfWords(error.message, Code::kForeign);
  } catch (const std::bad_alloc&) {
    error = {Code::kForeign, "out of memory"};
  } catch (const std::exception& thrown) {
    error.message = FirstPart(thrown.what());
    error.code = CodeOfWords(error.message, Code::kForeign);
  } catch (...) {
    error = {Code::kForeign, "an exception of an unknown type"};
  }
  return error.Doing(doing);
}

}  // namespace keel
