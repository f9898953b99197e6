// Files: the one door to the disk, so that tests can put a failing or a forgetful disk behind it.
// Promises   atomic: Rename() (others see the old or the new, never neither); Open() with
//            `exclusive`; MakeDir(); Lock(). Nothing else is: a WriteAt() may be seen half done.
//            durable: a file's content after its File::Sync(); a name (made, renamed, removed)
//            after SyncDir() of the directory that holds it. A synced file whose name was not
//            synced can be gone after power loss, and so can a whole unsynced directory.
// Does not   buffer, retry what failed, or make anything durable by closing it.
// Threads    any method of Files and File from any thread; writes to one range need one owner.
// Errors     kNotFound, kExists (a non-empty directory too), kNoSpace (disk or quota), kInvalid
//            (flags that make no sense, misaligned direct pieces), kIo for all else.
// Lifetime   a File may not outlive the Files that opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace keel {

// Where File::direct() holds: address, offset and size of each piece are multiples of this.
inline constexpr size_t kDirectAlignment = 4096;

struct OpenFlags {
  bool write = false;       // reading is always possible
  bool create = false;      // make it if it is not there; needs `write`
  bool exclusive = false;   // kExists if it is there; needs `create`
  bool truncate = false;    // throw its content away; needs `write`
  bool direct = false;      // past the page cache, where the file system can: see File::direct()
  bool sequential = false;  // a hint: it will be read from front to back
  bool early_writeback = false;  // a hint: send each piece to the disk now, not all at Sync()
};

// An open file. Closed by its destructor, which reports nothing: what counts is Sync().
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  virtual const std::string& path() const = 0;
  // True where OpenFlags::direct was asked for and granted; kDirectAlignment then binds ReadAt()
  // and WriteAt(). A tail that does not fit is written padded, then cut off by Truncate().
  virtual bool direct() const = 0;

  // Fills `into`; fewer bytes only where the file ends.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> into) = 0;
  // Writes all of `from`, growing the file (a gap reads as zeros). After an error any part of the
  // range may have been written.
  virtual Status WriteAt(uint64_t offset, std::span<const std::byte> from) = 0;
  virtual Status Truncate(uint64_t bytes) = 0;
  // Reserves room for the first `bytes` bytes without changing Size(). False: this file system
  // cannot promise room (writes may still meet kNoSpace). kNoSpace: there is not enough.
  virtual Result<bool> Allocate(uint64_t bytes) = 0;
  // After a failure the content on disk is unknown, and a second Sync() may wrongly succeed:
  // give the file up and write another one.
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() = 0;
};

enum class FileKind { kFile, kDirectory, kOther };

struct DirEntry {
  std::string name;
  FileKind kind = FileKind::kOther;
  auto operator<=>(const DirEntry&) const = default;
};

struct FileInfo {
  FileKind kind = FileKind::kOther;
  uint64_t bytes = 0;  // of a file; 0 otherwise
};

// Held as long as it lives, at most as long as its process (or the children that share it by fork).
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  virtual ~FileLock() = default;
};

class Objects;

// A place in a bucket (base/objects.h).
struct BucketPlace {
  Objects* bucket = nullptr;   // null: the path is on a disk
  std::string key = {};        // without slashes at its ends; "" is the bucket itself
};

class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  virtual Result<std::unique_ptr<File>> Open(const std::string& path, OpenFlags flags) = 0;
  // Replaces `to` if it is there (a directory only by a directory, and only an empty one).
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  virtual Status RemoveDir(const std::string& path) = 0;
  virtual Status MakeDir(const std::string& path) = 0;
  // Sorted by name, without "." and "..". What a symbolic link points to decides its kind.
  virtual Result<std::vector<DirEntry>> List(const std::string& path) = 0;
  virtual Result<FileInfo> Stat(const std::string& path) = 0;
  virtual Status SyncDir(const std::string& path) = 0;
  // Where `path` leads when it is a symbolic link, and that again, to the end: there something may
  // be, or be made. kInvalid: to an open file of a process (/dev/stdout), which has no such place.
  virtual Result<std::string> Resolve(const std::string& path) = 0;
  // What the file system of `path` could take now; quotas are not counted.
  virtual Result<uint64_t> FreeBytes(const std::string& path) = 0;
  // Takes the lock file `path`, made if it is not there, without waiting. kExists: another one
  // holds it; the message quotes the `owner` that the holder gave. The file that is locked is the
  // one that `path` named at that time. It stays when the lock goes; only the holder may remove it.
  // kInvalid: this file system knows no locks.
  virtual Result<std::unique_ptr<FileLock>> Lock(const std::string& path,
                                                 const std::string& owner) = 0;
  // Whether somebody holds the lock file `path`; nobody does where it is not there. Needs only
  // leave to read it. A Lock() at the same moment may find the look in its way and give kExists.
  virtual Result<bool> IsLocked(const std::string& path) = 0;
  // Whether the path is in a bucket, where nothing can be renamed, locked or written in part. Who
  // must do one of these does without, by what buckets can.
  virtual Result<BucketPlace> Bucket(const std::string& path);
};

// The rules of OpenFlags and kDirectAlignment, shared by all implementations: kInvalid or fine.
Status CheckOpenFlags(const std::string& path, const OpenFlags& flags);
Status CheckDirectPiece(const std::string& path, uint64_t offset, const void* address,
                        size_t bytes);

}  // namespace keel
