// A spare has one end of a socket, its gate, under the number that a worker's control link has. It
// writes a byte once it has imported PyTorch: that it waits, or that it makes more. Whom it becomes
// comes as one byte with descriptors: first a file in memory with the words, then those that it
// shall have (evenkeel_spare.py reads them). A maker gets a byte with the gate of the one that it
// shall make, and answers with its number.
#include "elastic/workers/spares.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "elastic/process/exit_status.h"
#include "elastic/protocol/control_link.h"
#include "elastic/workers/process.h"

namespace keel {
namespace {

using boost::system::error_code;

constexpr const char* kSpareModule = "evenkeel_spare";
// As many as one message may carry is 253; a worker has four.
constexpr size_t kDescriptorsMax = 16;
// So often may spares end before they are ready, or a maker make none, one after the other.
constexpr int kFailuresMax = 3;
constexpr char kMakes = 'm';   // a first byte; any other: it waits

// `python -u ...`: what a Python worker is started with, however its script was named.
bool IsPython(const std::vector<std::string>& argv) { return argv.size() > 2 && argv[1] == "-u"; }

Error System(const std::string& what) {
  return {Code::kForeign, what + ": " + std::strerror(errno)};
}

// The words of a spec, each ended by a NUL: the numbers that its descriptors are to have, then how
// many words its command line has, these, and its environment.
std::string WordsOf(const ChildSpec& spec, const std::vector<int>& numbers) {
  std::string text;
  const auto add = [&](const std::string& word) { text.append(word).push_back('\0'); };
  std::string list;
  for (const int number : numbers) list += (list.empty() ? "" : " ") + std::to_string(number);
  add(list);
  add(std::to_string(spec.argv.size()));
  for (const std::string& word : spec.argv) add(word);
  for (const auto& [name, value] : spec.environment) add(name + "=" + value);
  return text;
}

Result<Fd> FileInMemory(const std::string& text) {
  Fd file(memfd_create("worker", MFD_CLOEXEC));
  if (!file.valid()) return System("making a file in memory");
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(file.number(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return System("writing to memory");
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  if (lseek(file.number(), 0, SEEK_SET) != 0) return System("rewinding a file in memory");
  return file;
}

Status SendDescriptors(int socket, const std::vector<int>& descriptors,
                       const std::string& doing) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kDescriptorsMax)> control{};
  char word = 'w';
  iovec data{&word, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  for (;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return Ok();
    if (errno != EINTR) return System(doing);
  }
}

Status Become(const ChildSpec& spec, int gate) {
  std::vector<Fd> opened;
  std::vector<int> numbers, descriptors = {-1};   // the words come first
  const Stream* const streams[] = {&spec.in, &spec.out, &spec.err};
  for (int target = 0; target < 3; ++target) {
    KEEL_TRY_ASSIGN(Fd stream, OpenStream(*streams[target], target));
    numbers.push_back(target);
    descriptors.push_back(stream.number());
    opened.push_back(std::move(stream));
  }
  for (const InheritedFd& fd : spec.fds) {
    numbers.push_back(fd.theirs);
    descriptors.push_back(fd.ours);
  }
  if (descriptors.size() > kDescriptorsMax || !spec.working_dir.empty()) {
    return Error{Code::kInvalid, "a spare process cannot become that"};
  }
  KEEL_TRY_ASSIGN(const Fd words, FileInMemory(WordsOf(spec, numbers)));
  descriptors[0] = words.number();
  return SendDescriptors(gate, descriptors, "telling a spare process whom it becomes");
}

bool IsOurChild(pid_t pid) {
  siginfo_t info{};
  return pid > 0 &&
         waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

struct Gate {
  Fd ours, theirs;
};

Result<Gate> MakeGate() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return System("making a socket");
  }
  return Gate{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Spares::Spares(boost::asio::io_context& loop, int count, Duration delay)
    : loop_(loop), delay_(delay), wanted_(count), later_(loop) {}

Spares::~Spares() {
  if (maker_) spares_.push_back(maker_);
  for (const std::shared_ptr<Spare>& spare : spares_) {
    error_code ignored;
    spare->gate.close(ignored);
    spare->child.reset();
  }
}

void Spares::MakeFor(const ChildSpec& worker) {
  if (wanted_ == 0 || like_ || !IsPython(worker.argv)) return;
  like_ = worker;
  MakeLater();
}

Result<Spares::Started> Spares::Start(const ChildSpec& spec) {
  if (like_ && !maker_) MakeLater();
  for (auto at = spares_.begin(); at != spares_.end(); ++at) {
    const std::shared_ptr<Spare> spare = *at;
    if (!spare->is_ready || spec.argv.front() != like_->argv.front() || !IsPython(spec.argv)) {
      continue;
    }
    const Status told = Become(spec, spare->gate.native_handle());
    spares_.erase(at);
    error_code ignored;
    spare->gate.close(ignored);
    Child child = *std::exchange(spare->child, std::nullopt);
    if (maker_) MakeOne();
    if (told.ok()) {
      LogInfo("spare-taken", {{"pid", child.pid()}});
      return Started{.child = std::move(child), .was_spare = true};
    }
    LogWarn("spare-not-taken", {{"reason", told.error().message}});
    break;
  }
  KEEL_TRY_ASSIGN(Child child, Spawn(spec));
  return Started{.child = std::move(child)};
}

// Each start of a worker puts it off: what starts now shall have the processors.
void Spares::MakeLater() {
  later_.expires_after(delay_);
  later_.async_wait([this](const error_code& failure) {
    if (!failure) MakeOne();
  });
}

void Spares::MakeOne() {
  if (static_cast<int>(spares_.size() + asked_.size()) >= wanted_) return;
  if (maker_) {
    if (const Status asked = AskMaker(); !asked.ok()) return LoseMaker(asked.error().message);
    return MakeOne();
  }
  // Whoever imports PyTorch now may become the maker.
  if (std::any_of(spares_.begin(), spares_.end(), [](const auto& one) { return !one->is_ready; })) {
    return MakeLater();
  }
  if (const Status started = StartOne(); !started.ok()) return GiveUp(started.error().message);
  MakeLater();
}

Status Spares::StartOne() {
  KEEL_TRY_ASSIGN(Gate gate, MakeGate());
  ChildSpec spec;
  spec.argv = {like_->argv.front(), "-u", "-m", kSpareModule};
  spec.environment = like_->environment;
  spec.environment.erase(kControlFdVariable);
  spec.out = spec.err = Stream::Null();
  spec.fds = {{gate.theirs.number(), kWorkerControlFd}};
  KEEL_TRY_ASSIGN(Child child, Spawn(spec));
  return Add(std::move(child), std::move(gate.ours));
}

Status Spares::AskMaker() {
  KEEL_TRY_ASSIGN(Gate gate, MakeGate());
  KEEL_TRY(SendDescriptors(maker_->gate.native_handle(), {gate.theirs.number()},
                           "asking for a spare process"));
  asked_.push_back(std::move(gate.ours));
  return Ok();
}

Status Spares::Add(Child child, Fd gate) {
  const auto spare = std::make_shared<Spare>(loop_, std::move(child));
  error_code failure;
  spare->gate.assign(boost::asio::local::stream_protocol(), gate.number(), failure);
  if (failure) return Error{Code::kForeign, "watching a socket: " + failure.message()};
  gate.Release();
  spares_.push_back(spare);
  Listen(spare);
  return Ok();
}

void Spares::Listen(const std::shared_ptr<Spare>& spare) {
  spare->gate.async_read_some(boost::asio::buffer(&spare->word, 1),
                              [this, spare](const error_code& failure, size_t) {
                                if (failure == boost::asio::error::operation_aborted) return;
                                if (failure) return OnGone(spare);
                                OnWord(spare);
                              });
}

void Spares::OnWord(const std::shared_ptr<Spare>& spare) {
  if (spare->word != kMakes) {
    spare->is_ready = true;
    failed_ = 0;
    LogInfo("spare-ready", {{"pid", spare->child->pid()}});
    return Listen(spare);
  }
  spares_.remove(spare);
  maker_ = spare;
  ListenToMaker(spare);
  MakeOne();
}

void Spares::ListenToMaker(const std::shared_ptr<Spare>& maker) {
  boost::asio::async_read(maker->gate, boost::asio::buffer(&maker->made, sizeof maker->made),
                          [this, maker](const error_code& failure, size_t) {
                            // A word may have been on its way when the maker was lost.
                            if (maker_ != maker) return;
                            if (failure) return LoseMaker("it has ended");
                            OnMade(maker->made);
                            if (maker_ == maker) ListenToMaker(maker);
                          });
}

// The process is a child of ours, as if we had started it.
void Spares::OnMade(pid_t pid) {
  Fd gate = std::move(asked_.front());
  asked_.pop_front();
  if (!IsOurChild(pid)) return LoseMaker("it could not double itself");
  Result<Child> child = Child::Adopt(pid);
  if (!child.ok()) return LoseMaker(child.error().message);
  const Status added = Add(std::move(*child), std::move(gate));
  if (!added.ok()) LoseMaker(added.error().message);
}

void Spares::OnGone(const std::shared_ptr<Spare>& spare) {
  spares_.remove(spare);
  spare->child.reset();
  if (spare->is_ready || ++failed_ < kFailuresMax) return MakeLater();
  GiveUp("python -m " + std::string(kSpareModule) + " ended; is the package evenkeel where " +
         like_->argv.front() + " looks for modules?");
}

// Those that it has made stay.
void Spares::LoseMaker(const std::string& why) {
  LogInfo("spare-maker-lost", {{"pid", maker_->child->pid()}, {"reason", why}});
  const std::shared_ptr<Spare> maker = std::exchange(maker_, nullptr);
  error_code ignored;
  maker->gate.close(ignored);
  maker->child.reset();
  asked_.clear();
  if (++failed_ < kFailuresMax) return MakeLater();
  GiveUp("the processes that make them are lost again and again");
}

void Spares::GiveUp(const std::string& why) {
  LogInfo("no-spares", {{"reason", why}});
  wanted_ = 0;
}

}  // namespace keel
