// AddressBook: how the members of an epoch find each other. Each writes a card to the store; the
// first member makes a book of all cards, and everybody reads that.
// Promises   a member asks the store for a few things, however many members there are; only the
//            first one reads as many cards as that. All members have the same book. Who has it has
//            taken its card back: of an epoch, one key stays in the store.
// Does not   connect to anybody (trainer/group/gloo_mesh.h).
// Threads    one.
// Errors     exceptions: those of the store; a book that makes no sense.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/group/breakable_store.h"
#include "trainer/group/peer_memory.h"
#include "trainer/group/shared_notes.h"

namespace keel {

struct MemberCard {
  std::vector<uint8_t> address;   // as Gloo publishes it
  MemoryCard memory;
  SharedNotes::Card notes;
  std::string host = {};          // its name, for messages; may be empty
};

// Is told for which member we wait now; all but the first one wait for the first one.
using OnWaitingFor = std::function<void(int rank)>;

// Returns the cards of all members, by rank.
std::vector<MemberCard> ExchangeCards(BreakableStore& store, int rank, int size,
                                      const MemberCard& own, const OnWaitingFor& on_waiting);

// --- Their bytes ---

std::vector<uint8_t> BytesOf(const std::vector<MemberCard>& book);
// Throws what is wrong with bytes that are not those of `size` cards.
std::vector<MemberCard> BookOf(const std::vector<uint8_t>& bytes, int size);

}  // namespace keel
