// All members run the same program, so cards travel as they lie in memory.
#include "trainer/group/address_book.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace keel {
namespace {

constexpr const char* kBook = "book";

std::string CardKey(int rank) { return "card/" + std::to_string(rank); }

template <class Value>
  requires std::is_trivially_copyable_v<Value>
void Append(std::vector<uint8_t>& bytes, const Value& value) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(Value));
}

template <class Bytes>
void AppendBytes(std::vector<uint8_t>& bytes, const Bytes& more) {
  Append(bytes, static_cast<uint64_t>(more.size()));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void Append(std::vector<uint8_t>& bytes, const MemberCard& card) {
  AppendBytes(bytes, card.address);
  Append(bytes, card.memory);
  Append(bytes, card.notes);
  AppendBytes(bytes, card.host);
}

class Reader {
 public:
  explicit Reader(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  template <class Value>
    requires std::is_trivially_copyable_v<Value>
  Value Next() {
    Value value;
    std::memcpy(&value, Take(sizeof(Value)), sizeof(Value));
    return value;
  }
  MemberCard NextCard() {
    MemberCard card;
    card.address = NextBytes<std::vector<uint8_t>>();
    card.memory = Next<MemoryCard>();
    card.notes = Next<SharedNotes::Card>();
    card.host = NextBytes<std::string>();
    return card;
  }
  bool done() const { return taken_ == bytes_.size(); }

 private:
  template <class Bytes>
  Bytes NextBytes() {
    const auto length = Next<uint64_t>();
    const uint8_t* const begin = Take(length);
    return Bytes(begin, begin + length);
  }
  const uint8_t* Take(uint64_t length) {
    if (length > bytes_.size() - taken_) throw std::runtime_error("a card that was cut short");
    const uint8_t* const at = bytes_.data() + taken_;
    taken_ += length;
    return at;
  }

  const std::vector<uint8_t>& bytes_;
  size_t taken_ = 0;
};

// Of the first member: the others' cards, put together as they are.
std::vector<uint8_t> Collect(BreakableStore& store, int size, const std::vector<uint8_t>& own,
                             const OnWaitingFor& on_waiting) {
  std::vector<std::string> keys;
  for (int rank = 1; rank < size; ++rank) keys.push_back(CardKey(rank));
  std::vector<uint8_t> book = own;
  const auto cards = store.GetAll(
      keys, [&](size_t index) { on_waiting(static_cast<int>(index) + 1); });
  for (const std::vector<uint8_t>& card : cards) book.insert(book.end(), card.begin(), card.end());
  return book;
}

}  // namespace

std::vector<uint8_t> BytesOf(const std::vector<MemberCard>& book) {
  std::vector<uint8_t> bytes;
  for (const MemberCard& card : book) Append(bytes, card);
  return bytes;
}

std::vector<MemberCard> BookOf(const std::vector<uint8_t>& bytes, int size) {
  Reader reader(bytes);
  std::vector<MemberCard> book;
  for (int rank = 0; rank < size; ++rank) book.push_back(reader.NextCard());
  if (!reader.done()) {
    throw std::runtime_error("more than " + std::to_string(size) + " cards");
  }
  return book;
}

std::vector<MemberCard> ExchangeCards(BreakableStore& store, int rank, int size,
                                      const MemberCard& own, const OnWaitingFor& on_waiting) {
  if (size == 1) return {own};
  const std::vector<uint8_t> bytes = BytesOf({own});
  if (rank == 0) {
    const std::vector<uint8_t> book = Collect(store, size, bytes, on_waiting);
    store.Set(kBook, book);
    return BookOf(book, size);
  }
  store.Set(CardKey(rank), bytes);
  on_waiting(0);
  std::vector<MemberCard> book = BookOf(store.Get(kBook), size);
  store.Delete(CardKey(rank));
  return book;
}

}  // namespace keel
