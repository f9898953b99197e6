// The table from errno to the caller's reaction and to a cure.
#include "base/file_error.h"

#include <cerrno>
#include <system_error>

namespace keel {
namespace {

std::string_view CureOf(int error_number) {
  switch (error_number) {
    case ENOSPC: return "; free some space there or choose another directory";
    case EDQUOT: return "; free some of your quota or choose another directory";
    case EACCES:
    case EPERM: return "; check its owner and mode, and those of the directories above it";
    case EROFS: return "; mount it writable or choose another directory";
    case EMFILE:
    case ENFILE: return "; raise the limit on open files (ulimit -n)";
    default: return "";
  }
}

// What a network file system gives while its server or its network is away. A disk that breaks
// gives the first one, too.
bool MayPass(int error_number) {
  switch (error_number) {
    case EIO:
    case EREMOTEIO:
    case ESTALE:
    case ETIMEDOUT:
    case ENOTCONN:
    case ESHUTDOWN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOLCK: return true;
    default: return false;
  }
}

}  // namespace

Code CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOENT: return Code::kNotFound;
    case EEXIST:
    case ENOTEMPTY: return Code::kExists;
    case ENOSPC:
    case EDQUOT: return Code::kNoSpace;
    default: return Code::kIo;
  }
}

Error FileError(std::string_view operation, const std::string& path, int error_number) {
  std::string message(operation);
  message += " " + path + ": " + std::generic_category().message(error_number);
  message += CureOf(error_number);
  return {CodeOfErrno(error_number), message, MayPass(error_number)};
}

Error LockHeldError(const std::string& path, const std::string& owner) {
  // Who took it a moment ago may not have left its name yet.
  const std::string who = owner.empty() ? "another process" : "\"" + owner + "\"";
  return {Code::kExists, "lock " + path + ": it is held by " + who +
                             "; stop that one first, or use another directory"};
}

}  // namespace keel
