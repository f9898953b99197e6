// NoteBoard: how far this worker has come with its reductions, for those on its host that read its
// memory: they look at the board there, instead of being sent a message each time. A message over a
// connection needs a thread of Gloo's at both ends, which on a full machine takes the processor
// from who computes, or is waited for until that one is done.
// Promises   a note counts for its operation and for all before, so that a board says in three
//            numbers how far everything is. A board that was closed, or whose process is gone, has
//            no notes any more. One that was only destroyed keeps them until its process has made
//            kKept others: who leaves when all is taken need not wait until everybody has seen it.
// Does not   wait, or wake who looks (trainer/group/gloo_mesh.h). Order operations: all workers
//            number them alike.
// Threads    Tell() and Offer() of one operation by one thread at a time; Close() and looks, any.
// Errors     kPeerLost: closed, or gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace keel {

enum class Note {
  kOffered,  // where what others read lies is known, and is all there but for the sums
  kSummed,   // the sums of our slice are there
  kTaken,    // nothing of the others is needed any more
};

class NoteBoard {
 public:
  static constexpr size_t kKept = 8;
  // Who offers more operations than that at a time must see that the first of them is taken.
  static constexpr uint32_t kOffersMax = 64;
  static constexpr size_t kPlacesMax = 66;   // the nodes of a worker, and where its sums will be

  // What others need to find it. Travels as its bytes.
  struct Card {
    uint64_t address = 0;
    uint64_t number = 0;   // of no other board before or after in this process
  };
  struct Memory;

  NoteBoard();
  ~NoteBoard();
  NoteBoard(const NoteBoard&) = delete;
  NoteBoard& operator=(const NoteBoard&) = delete;

  Card card() const;
  void Offer(uint32_t operation, std::span<const uint64_t> places);
  void Tell(Note note, uint32_t operation);
  void Close();

 private:
  Memory& memory_;
  const uint64_t number_;
};

// A look at the board of another process.
class ForeignBoard {
 public:
  ForeignBoard(int64_t pid, const NoteBoard::Card& card) : pid_(pid), card_(card) {}

  Result<bool> Has(Note note, uint32_t operation) const;
  // Of an operation that it has kOffered.
  Result<std::vector<uint64_t>> PlacesOf(uint32_t operation) const;

 private:
  int64_t pid_ = 0;
  NoteBoard::Card card_;
};

}  // namespace keel
