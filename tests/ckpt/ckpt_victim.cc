// A process that saves checkpoints and may be killed while it does; ckpt_process_test.cc runs it.
//   ckpt_victim save ROOT STEP CALL     saves a small state, removes older ones; SIGKILL at the
//                                       n-th call to the disk (0: never)
//   ckpt_victim big ROOT MIB LIMIT_MIB  saves and verifies a state of MIB under a limit on its
//                                       memory; prints the most it had
//   ckpt_victim full ROOT 0 0           saves onto a file system of its own until that is full,
//                                       then turns it read-only; 77: it may not have one
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/faulty_files.h"
#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/retention.h"
#include "ckpt/verify.h"
#include "tests/ckpt/state.h"

namespace keel {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

int Report(const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}

Status SaveSmall(const std::string& root, uint64_t step, int kill_at) {
  PosixFiles posix;
  FaultyFiles files(posix);
  if (kill_at > 0) {
    files.Plan({.kind = Fault::Kind::kAct, .at_call = kill_at, .act = [] { raise(SIGKILL); }});
  }
  const TestState state = TestState::Make(step, 20'000);
  MemorySource source(state.Spans());
  KEEL_TRY(SaveCheckpoint(files, PlanOf(state, root, step, step * 1000 + kill_at, 4096), source,
                          {}, 0));
  KEEL_TRY(ApplyRetention(files, root, {.keep_last = 1}));
  return Ok();
}

// A state far larger than memory: the same block again and again.
class EndlessSource : public TensorSource {
 public:
  EndlessSource() : block_(2 * kMiB) {
    Random random(1);
    for (float& number : block_) number = Gaussian(random);
  }
  const std::byte* Borrow(size_t, uint64_t, size_t) override { return nullptr; }
  Status Read(size_t, uint64_t offset, std::span<std::byte> into) override {
    const auto bytes = std::as_bytes(std::span(block_));
    for (size_t done = 0; done < into.size();) {
      const size_t at = (offset + done) % bytes.size();
      const size_t count = std::min(into.size() - done, bytes.size() - at);
      std::memcpy(into.data() + done, bytes.data() + at, count);
      done += count;
    }
    return Ok();
  }

 private:
  std::vector<float> block_;
};

Status SaveBig(const std::string& root, uint64_t mib, uint64_t limit_mib) {
  const rlimit limit{limit_mib * kMiB, limit_mib * kMiB};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return Error{Code::kForeign, "setrlimit failed"};
  PosixFiles files;
  EndlessSource source;
  TestState state;
  for (uint64_t i = 0; i < mib / 64; ++i) {
    state.specs.push_back({"w" + std::to_string(i), Dtype::kF32, {16 * kMiB}});
  }
  KEEL_TRY_ASSIGN(const auto report,
                  SaveCheckpoint(files, PlanOf(state, root, 1, 1), source,
                                 {.compress_threads = 2, .write_threads = 2}, 0));
  KEEL_TRY_ASSIGN(const auto checkpoint, Checkpoint::Open(files, report.step_dir));
  KEEL_TRY_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
  KEEL_TRY(DamageStatus(*checkpoint, damages));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("state %llu MiB, file %llu MiB, most memory %ld MiB\n",
              static_cast<unsigned long long>(report.content_bytes / kMiB),
              static_cast<unsigned long long>(report.stored_bytes / kMiB), usage.ru_maxrss / 1024);
  return Ok();
}

// Whether ROOT is a file system of ours from now on, of 2 MiB; nobody else sees it.
bool MountSmall(const std::string& root) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", root.c_str(), "tmpfs", 0, "size=2m") == 0;
}

// Saves a state of `numbers` floats; must fail with `code`, and change nothing.
Status ExpectFailure(const std::string& root, int64_t numbers, Code code) {
  PosixFiles files;
  const TestState state = TestState::Make(9, numbers);
  MemorySource source(state.Spans());
  KEEL_TRY_ASSIGN(const auto before, files.List(root));
  KEEL_TRY_ASSIGN(const uint64_t room, files.FreeBytes(root));
  const auto saved = SaveCheckpoint(files, PlanOf(state, root, 900, 900), source, {}, 0);
  if (saved.ok()) return Error{Code::kForeign, "saving succeeded"};
  std::printf("%s: %s\n", std::string(CodeName(saved.error().code)).c_str(),
              saved.error().message.c_str());
  if (saved.error().code != code) return saved.error();
  KEEL_TRY_ASSIGN(const auto after, files.List(root));
  KEEL_TRY_ASSIGN(const uint64_t room_left, files.FreeBytes(root));
  if (before != after || room != room_left) {
    return Error{Code::kForeign, "the failed save left something behind"};
  }
  KEEL_TRY_ASSIGN(const StepEntry newest, NewestComplete(files, root));
  KEEL_TRY_ASSIGN(const auto checkpoint, Checkpoint::Open(files, newest.dir));
  KEEL_TRY_ASSIGN(const auto damages, VerifyFrames(*checkpoint, {}));
  return DamageStatus(*checkpoint, damages);
}

Status FillDisk(const std::string& root) {
  KEEL_TRY(SaveSmall(root, 1, 0));
  KEEL_TRY(ExpectFailure(root, 2'000'000, Code::kNoSpace));
  if (::mount("none", root.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
    return Error{Code::kForeign, std::string("remounting: ") + std::strerror(errno)};
  }
  return ExpectFailure(root, 20'000, Code::kIo);
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  const std::string mode = argc == 5 ? argv[1] : "";
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (mode == "save") {
    return keel::Report(keel::SaveSmall(argv[2], number(3), static_cast<int>(number(4))));
  }
  if (mode == "big") return keel::Report(keel::SaveBig(argv[2], number(3), number(4)));
  if (mode == "full") {
    if (keel::MountSmall(argv[2])) return keel::Report(keel::FillDisk(argv[2]));
    std::printf("no file system of its own: %s\n", std::strerror(errno));
    return 77;
  }
  std::fprintf(stderr, "usage: ckpt_victim save ROOT STEP CALL | big ROOT MIB LIMIT_MIB | "
                       "full ROOT 0 0\n");
  return 2;
}
