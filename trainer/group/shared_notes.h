// SharedNotes: how far this worker has come with its reductions, for the workers on its host that
// read its memory: they look at the notes instead of getting a message each time. A message over a
// connection needs a thread of Gloo's at both ends; on a full machine that thread takes the
// processor from a worker that computes, or has to wait for it.
// Promises   a note counts for its operation and all before it, so three numbers tell how far
//            everything is. Notes that were closed, or whose process is gone, tell nothing any
//            more. Those that were only destroyed stay until their process has made kKept
//            others: a worker that leaves once all is taken need not wait until everybody has seen
//            that.
// Does not   wait, or wake a worker that looks (trainer/group/gloo_mesh.h). Order operations: all
//            workers number them alike.
// Threads    Tell() and Offer() of one operation by one thread at a time; Close() and looks from
//            any.
// Errors     kPeerLost: closed, or gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace keel {

enum class Note {
  kOffered,  // the places are known, and all that others read is there, except the sums
  kSummed,   // the sums of our slice are there
  kTaken,    // this worker needs nothing of the others any more
};

class SharedNotes {
 public:
  static constexpr size_t kKept = 8;
  // A worker that has offered this many operations must see that the first of them is taken.
  static constexpr uint32_t kOffersMax = 64;
  static constexpr size_t kPlacesMax = 66;   // a worker's nodes, and its sums

  // What others need to find the notes. It is sent as its bytes.
  struct Card {
    uint64_t address = 0;
    uint64_t number = 0;   // unique to these notes within its process
  };
  struct Memory;

  SharedNotes();
  ~SharedNotes();
  SharedNotes(const SharedNotes&) = delete;
  SharedNotes& operator=(const SharedNotes&) = delete;

  Card card() const;
  void Offer(uint32_t operation, std::span<const uint64_t> places);
  void Tell(Note note, uint32_t operation);
  void Close();

 private:
  Memory& memory_;
  const uint64_t number_;
};

// Looks at the notes of another process.
class PeerNotes {
 public:
  PeerNotes(int64_t pid, const SharedNotes::Card& card) : pid_(pid), card_(card) {}

  Result<bool> Has(Note note, uint32_t operation) const;
  // The places of an operation that was noted as kOffered.
  Result<std::vector<uint64_t>> PlacesOf(uint32_t operation) const;

 private:
  int64_t pid_ = 0;
  SharedNotes::Card card_;
};

}  // namespace keel
