// Reading the memory of other processes: real ones, which live, are gone, or are not who they were.
#include "trainer/group/peer_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace keel {
namespace {

std::span<std::byte> SpanOf(std::vector<char>& bytes) {
  return std::as_writable_bytes(std::span(bytes));
}

// A child that does nothing; killed at the end.
class Child {
 public:
  Child() : pid_(fork()) {
    while (pid_ == 0) pause();
  }
  ~Child() { Kill(); }
  void Kill() {
    if (pid_ <= 1) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(PeerMemory, AnotherProcessIsReadWhereItsSecretIsFound) {
  MemoryCard card = OwnMemoryCard(7);
  EXPECT_EQ(card.bytes_min, 7u);
  EXPECT_TRUE(ShareHost(card, card));
  EXPECT_TRUE(CanRead(card));
  std::vector<char> ours(1 << 20, 'x');
  Child child;
  ASSERT_GT(child.pid(), 1);
  std::memset(ours.data(), 'y', ours.size());   // the child has its own copy
  card.pid = child.pid();
  ASSERT_TRUE(CanRead(card));
  std::vector<char> read(ours.size());
  const auto address = reinterpret_cast<uint64_t>(ours.data());
  ASSERT_TRUE(ReadMemory(child.pid(), address, SpanOf(read)).ok());
  EXPECT_EQ(read, std::vector<char>(ours.size(), 'x'));
}

TEST(PeerMemory, WhoIsGoneOrHasAnotherSecretIsNotRead) {
  MemoryCard card = OwnMemoryCard(1);
  MemoryCard other = card;
  other.secret ^= 1;
  EXPECT_FALSE(CanRead(other));
  other = card;
  other.address = 8;
  EXPECT_FALSE(CanRead(other));
  Child child;
  ASSERT_GT(child.pid(), 1);
  card.pid = child.pid();
  EXPECT_TRUE(CanRead(card));
  child.Kill();
  EXPECT_FALSE(CanRead(card));
  char byte = 0;
  const Status gone =
      ReadMemory(card.pid, card.address, std::as_writable_bytes(std::span(&byte, 1)));
  EXPECT_EQ(gone.error().code, Code::kPeerLost);
  EXPECT_NE(gone.error().message.find("process " + std::to_string(card.pid)), std::string::npos);
}

TEST(PeerMemory, WhatEndsInTheMiddleIsAnError) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const pages =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const auto address = reinterpret_cast<uint64_t>(pages);
  std::vector<char> read(2 * page);
  EXPECT_TRUE(ReadMemory(getpid(), address, SpanOf(read)).ok());
  ASSERT_EQ(munmap(static_cast<char*>(pages) + page, page), 0);
  EXPECT_EQ(ReadMemory(getpid(), address, SpanOf(read)).error().code, Code::kPeerLost);
  munmap(pages, page);
}

TEST(PeerMemory, WhoTakesNoPartSharesAHostWithNobody) {
  EXPECT_FALSE(ShareHost({}, {}));
  EXPECT_FALSE(ShareHost(OwnMemoryCard(1), {}));
  EXPECT_FALSE(ShareHost({}, OwnMemoryCard(1)));
}

}  // namespace
}  // namespace keel
