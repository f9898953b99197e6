// The memory of notes is never given back to the system, so that a late look finds closed ones;
// numbers show when a look fell between two writes.
#include "trainer/group/shared_notes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/check.h"
#include "trainer/group/peer_memory.h"

namespace keel {
namespace {

constexpr size_t kNotes = 3;

// Orders accesses that another process sees. (ThreadSanitizer does not know std's fence.)
void Barrier() { __sync_synchronize(); }

// The kernel may copy notes byte by byte, so a number that is copied while it is written may be a
// mixture of two. Each number therefore carries its own complement.
uint64_t Sealed(uint32_t number) { return uint64_t{~number} << 32 | number; }
bool IsWhole(uint64_t sealed) { return Sealed(static_cast<uint32_t>(sealed)) == sealed; }

// Operations are counted from 0; a note holds how many were done. The count may wrap.
bool Reaches(uint64_t sealed, uint32_t operation) {
  return IsWhole(sealed) && static_cast<int32_t>(static_cast<uint32_t>(sealed) - operation) > 0;
}

struct Head {
  uint64_t number = 0;   // 0: closed
  uint64_t notes[kNotes] = {};
};

struct Offered {
  uint64_t operation = 0;
  uint64_t count = 0;
  std::array<uint64_t, SharedNotes::kPlacesMax> places{};
};

}  // namespace

// The layout begins like Head, as which it is read.
struct alignas(64) SharedNotes::Memory {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> notes[kNotes];
  std::array<Offered, kOffersMax> offers;
};

namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Head) == 4 * sizeof(uint64_t));

// A process makes notes once for each of its groups, and few exist at a time.
class Pool {
 public:
  SharedNotes::Memory& Take() {
    const std::lock_guard lock(mutex_);
    if (free_.size() <= SharedNotes::kKept) {
      all_.push_back(std::make_unique<SharedNotes::Memory>());
      return *all_.back();
    }
    SharedNotes::Memory* const longest = free_.front();
    free_.pop_front();
    return *longest;
  }
  void GiveBack(SharedNotes::Memory& memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&memory);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<SharedNotes::Memory>> all_;
  std::deque<SharedNotes::Memory*> free_;
};

// Never destroyed: groups are torn down by threads that may outlive main().
Pool& Places() {
  static Pool* const pool = new Pool;
  return *pool;
}

uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

Result<Head> ReadHead(int64_t pid, const SharedNotes::Card& card) {
  Head head;
  KEEL_TRY(ReadMemory(pid, card.address, std::as_writable_bytes(std::span(&head, 1))));
  Barrier();   // orders this read before those that it allows
  if (head.number == card.number) return head;
  return Error{Code::kPeerLost, "it has left the group"};
}

}  // namespace

// The notes are closed while they are wiped.
SharedNotes::SharedNotes() : memory_(Places().Take()), number_(NextNumber()) {
  Close();
  for (auto& note : memory_.notes) note.store(Sealed(0), std::memory_order_relaxed);
  memory_.number.store(number_, std::memory_order_release);
}

SharedNotes::~SharedNotes() { Places().GiveBack(memory_); }

SharedNotes::Card SharedNotes::card() const {
  return {reinterpret_cast<uint64_t>(&memory_), number_};
}

void SharedNotes::Offer(uint32_t operation, std::span<const uint64_t> places) {
  KEEL_CHECK(places.size() <= kPlacesMax, places.size() << " places");
  Offered& offered = memory_.offers[operation % kOffersMax];
  offered.operation = operation;
  offered.count = places.size();
  std::copy(places.begin(), places.end(), offered.places.begin());
  Tell(Note::kOffered, operation);
}

void SharedNotes::Tell(Note note, uint32_t operation) {
  memory_.notes[static_cast<size_t>(note)].store(Sealed(operation + 1),
                                                 std::memory_order_release);
}

void SharedNotes::Close() {
  memory_.number.store(0, std::memory_order_relaxed);
  Barrier();   // before the owner reuses its memory
}

Result<bool> PeerNotes::Has(Note note, uint32_t operation) const {
  KEEL_TRY_ASSIGN(const Head head, ReadHead(pid_, card_));
  return Reaches(head.notes[static_cast<size_t>(note)], operation);
}

Result<std::vector<uint64_t>> PeerNotes::PlacesOf(uint32_t operation) const {
  Offered offered;
  const uint64_t address = card_.address + offsetof(SharedNotes::Memory, offers) +
                           operation % SharedNotes::kOffersMax * sizeof(Offered);
  KEEL_TRY(ReadMemory(pid_, address, std::as_writable_bytes(std::span(&offered, 1))));
  Barrier();
  KEEL_TRY(ReadHead(pid_, card_));   // checks that these are still the same notes
  if (offered.operation != operation || offered.count > offered.places.size()) {
    return Error{Code::kCorrupt, "its offer of operation " + std::to_string(operation) +
                                     " is one of " + std::to_string(offered.operation)};
  }
  return std::vector<uint64_t>(offered.places.begin(), offered.places.begin() + offered.count);
}

}  // namespace keel
