// The system calls behind PosixFiles, each with its error and its interruption dealt with.
#include "base/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/file_error.h"
#include "base/file_helpers.h"

namespace keel {
namespace {

// Runs a system call until no signal interrupts it; its result is -1 with errno, or an answer.
template <class Call>
auto Uninterrupted(Call&& call) {
  for (;;) {
    const auto answer = call();
    if (answer >= 0 || errno != EINTR) return answer;
  }
}

// Owns a descriptor. close() is never repeated: Linux frees it even when a signal interrupts.
class Fd {
 public:
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&&) = delete;
  ~Fd() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

Result<Fd> OpenFd(std::string_view operation, const std::string& path, int flags) {
  Fd fd(Uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  if (fd.get() < 0) return FileError(operation, path, errno);
  return fd;
}

FileKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::kFile;
  return S_ISDIR(mode) ? FileKind::kDirectory : FileKind::kOther;
}

class PosixFile : public File {
 public:
  PosixFile(std::string path, Fd fd, bool direct, bool early_writeback)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        direct_(direct),
        early_writeback_(early_writeback) {}

  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) override;
  Status WriteAt(uint64_t offset, std::span<const std::byte> from) override;
  Status Truncate(uint64_t bytes) override;
  Result<bool> Allocate(uint64_t bytes) override;
  Status Sync() override;
  Result<uint64_t> Size() override;

 private:
  const std::string path_;
  const Fd fd_;
  const bool direct_;
  const bool early_writeback_;
};

Result<size_t> PosixFile::ReadAt(uint64_t offset, std::span<std::byte> into) {
  if (direct_) KEEL_TRY(CheckDirectPiece(path_, offset, into.data(), into.size()));
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = Uninterrupted([&] {
      return ::pread(fd_.get(), into.data() + done, into.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) return FileError("read", path_, errno);
    done += static_cast<size_t>(got);
    // A direct read that ends between two blocks has met the end of the file; asking for more
    // from there is misaligned, which some file systems refuse even at the end.
    if (got == 0 || (direct_ && done % kDirectAlignment != 0)) break;
  }
  return done;
}

Status PosixFile::WriteAt(uint64_t offset, std::span<const std::byte> from) {
  if (direct_) KEEL_TRY(CheckDirectPiece(path_, offset, from.data(), from.size()));
  size_t done = 0;
  while (done < from.size()) {
    const ssize_t wrote = Uninterrupted([&] {
      return ::pwrite(fd_.get(), from.data() + done, from.size() - done,
                      static_cast<off_t>(offset + done));
    });
    if (wrote < 0) return FileError("write", path_, errno);
    size_t whole = static_cast<size_t>(wrote);
    if (direct_) whole -= whole % kDirectAlignment;  // what is torn is written again
    if (whole == 0) {
      return Error{Code::kIo, "write " + path_ + ": the system takes no more bytes at offset " +
                                  std::to_string(offset + done)};
    }
    done += whole;
  }
  if (early_writeback_ && !direct_) {
    // Only a hint: what it cannot do, Sync() does, and tells if it cannot either.
    (void)::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(from.size()),
                            SYNC_FILE_RANGE_WRITE);
  }
  return Ok();
}

Status PosixFile::Truncate(uint64_t bytes) {
  if (Uninterrupted([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(bytes)); }) < 0) {
    return FileError("truncate", path_, errno);
  }
  return Ok();
}

Result<bool> PosixFile::Allocate(uint64_t bytes) {
  if (bytes == 0) return true;
  const int answer = Uninterrupted(
      [&] { return ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)); });
  if (answer == 0) return true;
  if (errno == EOPNOTSUPP || errno == ENOSYS) return false;
  return FileError("reserve " + std::to_string(bytes) + " bytes for", path_, errno);
}

Status PosixFile::Sync() {
  if (Uninterrupted([&] { return ::fsync(fd_.get()); }) < 0) {
    return FileError("sync", path_, errno);
  }
  return Ok();
}

Result<uint64_t> PosixFile::Size() {
  struct stat about {};
  if (::fstat(fd_.get(), &about) < 0) return FileError("stat", path_, errno);
  return static_cast<uint64_t>(about.st_size);
}

int SystemFlags(const OpenFlags& flags) {
  // Without O_NONBLOCK, opening a pipe waits for its other end; regular files do not care.
  int system = O_NONBLOCK | (flags.write ? O_RDWR : O_RDONLY);
  if (flags.create) system |= O_CREAT;
  if (flags.exclusive) system |= O_EXCL;
  if (flags.truncate) system |= O_TRUNC;
  return system;
}

class PosixLock : public FileLock {
 public:
  explicit PosixLock(Fd fd) : fd_(std::move(fd)) {}

 private:
  const Fd fd_;  // closing it gives the lock back
};

// What the holder of a lock wrote about itself, for people; "" where it cannot be read.
std::string LockOwner(int fd) {
  char text[256];
  const ssize_t got = Uninterrupted([&] { return ::pread(fd, text, sizeof text, 0); });
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}

// Lustre without its mount option, or NFS without its lock daemon.
Error LockError(const std::string& path, int error_number) {
  Error error = FileError("lock", path, error_number);
  const bool knows_none = error_number == ENOSYS || error_number == EOPNOTSUPP ||
                          error_number == ENOLCK || error_number == EINVAL;
  if (knows_none) error.code = Code::kInvalid;
  return error;
}

// Whether `path` leads to the open file.
bool IsNamed(int fd, const std::string& path) {
  struct stat opened {}, named {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

constexpr int kLinksMax = 40;  // as the kernel has it

// Links there lead to open files and other things that have no name: what the link says may name
// something else.
bool IsOnProc(const std::string& path) {
  struct statfs about {};
  return ::statfs(ParentDir(path).c_str(), &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

class DirStream {
 public:
  explicit DirStream(const std::string& path) : stream_(::opendir(path.c_str())) {}
  DirStream(const DirStream&) = delete;
  DirStream& operator=(const DirStream&) = delete;
  ~DirStream() {
    if (stream_ != nullptr) ::closedir(stream_);
  }
  DIR* get() const { return stream_; }

 private:
  DIR* const stream_;
};

FileKind KindOfEntry(DIR* stream, const dirent& entry) {
  if (entry.d_type == DT_REG) return FileKind::kFile;
  if (entry.d_type == DT_DIR) return FileKind::kDirectory;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return FileKind::kOther;
  struct stat about {};
  if (::fstatat(::dirfd(stream), entry.d_name, &about, 0) < 0) return FileKind::kOther;
  return KindOf(about.st_mode);
}

}  // namespace

Result<std::unique_ptr<File>> PosixFiles::Open(const std::string& path, OpenFlags flags) {
  KEEL_TRY(CheckOpenFlags(path, flags));
  KEEL_TRY_ASSIGN(Fd fd, OpenFd("open", path, SystemFlags(flags)));
  struct stat about {};
  if (::fstat(fd.get(), &about) < 0) return FileError("stat", path, errno);
  if (S_ISDIR(about.st_mode)) return FileError("open", path, EISDIR);
  if (!S_ISREG(about.st_mode)) {
    return Error{Code::kIo, "open " + path + ": it is not a regular file"};
  }
  // Not at open(): there a file system that refuses O_DIRECT has already made the file, and a
  // second, exclusive open() would find it.
  bool direct = false;
  if (flags.direct) {
    const int now = ::fcntl(fd.get(), F_GETFL);
    direct = now >= 0 && ::fcntl(fd.get(), F_SETFL, now | O_DIRECT) == 0;
  }
  if (flags.sequential) (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return std::unique_ptr<File>(
      std::make_unique<PosixFile>(path, std::move(fd), direct, flags.early_writeback));
}

Status PosixFiles::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) < 0) return FileError("rename " + from + " to", to, errno);
  return Ok();
}

Status PosixFiles::Remove(const std::string& path) {
  if (::unlink(path.c_str()) < 0) return FileError("remove", path, errno);
  return Ok();
}

Status PosixFiles::RemoveDir(const std::string& path) {
  if (::rmdir(path.c_str()) < 0) return FileError("remove directory", path, errno);
  return Ok();
}

Status PosixFiles::MakeDir(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) < 0) return FileError("make directory", path, errno);
  return Ok();
}

Result<std::vector<DirEntry>> PosixFiles::List(const std::string& path) {
  const DirStream stream(path);
  if (stream.get() == nullptr) return FileError("list", path, errno);
  std::vector<DirEntry> entries;
  for (;;) {
    errno = 0;  // the only way to tell the end from a failure
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({name, KindOfEntry(stream.get(), *entry)});
  }
  if (errno != 0) return FileError("list", path, errno);
  std::sort(entries.begin(), entries.end());
  return entries;
}

Result<FileInfo> PosixFiles::Stat(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) < 0) return FileError("stat", path, errno);
  FileInfo info{KindOf(about.st_mode), 0};
  if (info.kind == FileKind::kFile) info.bytes = static_cast<uint64_t>(about.st_size);
  return info;
}

Status PosixFiles::SyncDir(const std::string& path) {
  KEEL_TRY_ASSIGN(const Fd fd, OpenFd("open directory", path, O_RDONLY | O_DIRECTORY));
  if (Uninterrupted([&] { return ::fsync(fd.get()); }) < 0) {
    return FileError("sync directory", path, errno);
  }
  return Ok();
}

Result<std::string> PosixFiles::Resolve(const std::string& path) {
  std::string place = path;
  for (int links = 0; links <= kLinksMax; ++links) {
    char target[PATH_MAX];
    const ssize_t bytes = ::readlink(place.c_str(), target, sizeof target);
    if (bytes < 0) {
      const bool is_end = errno == EINVAL || errno == ENOENT;  // no link, or nothing there yet
      return is_end ? Result<std::string>(place) : FileError("resolve", path, errno);
    }
    if (IsOnProc(place)) {
      return Error{Code::kInvalid, path + " is an open file of a process, which cannot be there "
                                          "whole or not at all: name a file"};
    }
    const std::string next(target, static_cast<size_t>(bytes));
    place = next.starts_with('/') ? next : JoinPath(ParentDir(place), next);
  }
  return FileError("resolve", path, ELOOP);
}

Result<uint64_t> PosixFiles::FreeBytes(const std::string& path) {
  struct statvfs about {};
  if (Uninterrupted([&] { return ::statvfs(path.c_str(), &about); }) < 0) {
    return FileError("ask for the free space at", path, errno);
  }
  return static_cast<uint64_t>(about.f_bavail) * about.f_frsize;
}

Result<std::unique_ptr<FileLock>> PosixFiles::Lock(const std::string& path,
                                                   const std::string& owner) {
  for (;;) {
    KEEL_TRY_ASSIGN(Fd fd, OpenFd("open lock file", path, O_RDWR | O_CREAT | O_NONBLOCK));
    if (Uninterrupted([&] { return ::flock(fd.get(), LOCK_EX | LOCK_NB); }) < 0) {
      if (errno != EWOULDBLOCK) return LockError(path, errno);
      return LockHeldError(path, LockOwner(fd.get()));
    }
    // A holder may have removed the file after we opened it, and let go before we locked it. Such a
    // lock holds nobody off: the next one would make and lock a file of its own.
    if (!IsNamed(fd.get(), path)) continue;
    // The owner's name only serves the message above: a full disk must not refuse the lock.
    if (Uninterrupted([&] { return ::ftruncate(fd.get(), 0); }) == 0) {
      (void)Uninterrupted([&] { return ::pwrite(fd.get(), owner.data(), owner.size(), 0); });
    }
    return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(fd)));
  }
}

Result<bool> PosixFiles::IsLocked(const std::string& path) {
  const auto fd = OpenFd("look at lock file", path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok() && fd.error().code == Code::kNotFound) return false;
  if (!fd.ok()) return fd.error();
  if (Uninterrupted([&] { return ::flock(fd->get(), LOCK_SH | LOCK_NB); }) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return FileError("look at lock", path, errno);
}

}  // namespace keel
