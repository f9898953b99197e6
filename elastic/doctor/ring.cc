// The numbers are cut into as many pieces as there are hosts: each piece goes round once to be
// added up, and once more so that all have it.
#include "elastic/doctor/ring.h"

#include <algorithm>
#include <span>

namespace keel {
namespace {

constexpr size_t kNumbers = size_t{1} << 18;   // 1 MiB
constexpr int kRounds = 6;                     // the first one warms up and does not count

class Ring {
 public:
  Ring(const RingPlace& ring, const Fd& next, const Fd& before, TimePoint deadline)
      : ring_(ring), next_(next), before_(before), deadline_(deadline), numbers_(kNumbers) {}

  Status AddUp() {
    for (size_t i = 0; i < kNumbers; ++i) {
      numbers_[i] = static_cast<float>((i % 97) * (ring_.place + 1));
    }
    for (size_t step = 0; step + 1 < ring_.size; ++step) KEEL_TRY(Step(step, /*adds=*/true));
    for (size_t step = 0; step + 1 < ring_.size; ++step) KEEL_TRY(Step(step, /*adds=*/false));
    return Ok();
  }

  Status CheckSum() const {
    const size_t all = ring_.size * (ring_.size + 1) / 2;
    for (size_t i = 0; i < kNumbers; ++i) {
      if (numbers_[i] == static_cast<float>((i % 97) * all)) continue;
      return Error{Code::kCorrupt, "the sum of number " + std::to_string(i) + " is wrong: bytes "
                                   "changed on the way"};
    }
    return Ok();
  }

 private:
  std::span<float> Piece(size_t index) {
    const size_t piece = index % ring_.size;
    const size_t begin = kNumbers * piece / ring_.size;
    return std::span(numbers_).subspan(begin, kNumbers * (piece + 1) / ring_.size - begin);
  }

  Status Step(size_t step, bool adds) {
    const size_t first = ring_.place + ring_.size + (adds ? 0 : 1) - step;
    const std::span<float> out = Piece(first);
    const std::span<float> own = Piece(first - 1);
    came_.resize(own.size());
    KEEL_TRY(Exchange(next_, std::as_bytes(out), before_,
                      std::as_writable_bytes(std::span(came_)), deadline_));
    for (size_t i = 0; i < own.size(); ++i) own[i] = came_[i] + (adds ? own[i] : 0.0f);
    return Ok();
  }

  const RingPlace& ring_;
  const Fd& next_;
  const Fd& before_;
  const TimePoint deadline_;
  std::vector<float> numbers_;
  std::vector<float> came_;
};

Result<DoctorSum> AddUp(const RingPlace& ring, const std::string& round, DoctorPort& port,
                        Clock& clock, TimePoint deadline) {
  KEEL_TRY_ASSIGN(const Fd next,
                  KnockForRing(ring.next_address, ring.next_port, round, deadline));
  KEEL_TRY_ASSIGN(const Fd before, port.TakeRing(deadline));
  Ring numbers(ring, next, before, deadline);
  std::vector<int64_t> took;
  for (int i = 0; i < kRounds; ++i) {
    const TimePoint began = clock.Monotonic();
    KEEL_TRY(numbers.AddUp());
    KEEL_TRY(numbers.CheckSum());
    if (i > 0) took.push_back((clock.Monotonic() - began).count());
  }
  std::sort(took.begin(), took.end());
  return DoctorSum{"", took[took.size() / 2], static_cast<int64_t>(kNumbers * sizeof(float))};
}

}  // namespace

DoctorSum AddUpAround(const RingPlace& ring, const std::string& round, DoctorPort& port,
                      Clock& clock, TimePoint deadline) {
  Result<DoctorSum> sum = AddUp(ring, round, port, clock, deadline);
  return sum.ok() ? *sum : DoctorSum{sum.error().message, 0, 0};
}

}  // namespace keel
