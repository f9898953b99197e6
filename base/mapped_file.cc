// open, fstat, mmap, close; munmap at the end.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_error.h"

namespace keel {
namespace {

// Of an open file; empty files have nothing that could be mapped.
Result<std::span<const std::byte>> Map(int descriptor, const std::string& path) {
  struct stat info{};
  if (::fstat(descriptor, &info) != 0) return FileError("stat", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{Code::kInvalid, "map " + path + ": it is not a regular file"};
  }
  const size_t bytes = static_cast<size_t>(info.st_size);
  if (bytes == 0) return std::span<const std::byte>();
  void* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return FileError("map", path, errno);
  return std::span(static_cast<const std::byte*>(begin), bytes);
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  // A pipe would block without O_NONBLOCK; it means nothing to a regular file.
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return FileError("open", path, errno);
  const Result<std::span<const std::byte>> bytes = Map(descriptor, path);
  ::close(descriptor);   // the mapping stays
  if (!bytes.ok()) return bytes.error();
  return std::unique_ptr<MappedFile>(new MappedFile(path, *bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace keel
