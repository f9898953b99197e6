// Time is added to a seat's state when the seat changes to another one.
#include "elastic/report/time_ledger.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace keel {
namespace {

double Seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

}  // namespace

Duration WorkerTime::Total() const {
  Duration total{0};
  for (const TimePart& each : kTimeParts) total += this->*each.part;
  return total;
}

double WorkerTime::Goodput() const {
  const Duration total = Total();
  return total <= Duration(0) ? 0 : Seconds(steps) / Seconds(total);
}

std::string WorkerTimeText(const WorkerTime& time) {
  const Duration total = time.Total();
  std::string text = "goodput " + FixedText(time.Goodput(), 3) + ": of " + DurationText(total) +
                     " of worker time here " + DurationText(time.steps) +
                     " went into steps that counted";
  std::vector<TimePart> rest(kTimeParts.begin() + 1, kTimeParts.end());
  std::stable_sort(rest.begin(), rest.end(), [&](const TimePart& a, const TimePart& b) {
    return time.*a.part > time.*b.part;
  });
  const char* between = "; the rest: ";
  for (const TimePart& each : rest) {
    constexpr double kLeast = 0.0005;   // less would be told as 0.0%
    const double share = total <= Duration(0) ? 0 : Seconds(time.*each.part) / Seconds(total);
    if (share < kLeast) continue;
    text += between + std::string(each.words) + " " + FixedText(100 * share, 1) + "%";
    between = ", ";
  }
  return text;
}

Json WorkerTimeJson(const WorkerTime& time) {
  Json json = {{"goodput", time.knows_steps ? Json(time.Goodput()) : Json()}};
  Json seconds;
  for (const TimePart& each : kTimeParts) {
    seconds[std::string(each.name)] = Seconds(time.*each.part);
  }
  json["seconds"] = std::move(seconds);
  return json;
}

TimeLedger::TimeLedger(size_t seats, TimePoint now) : seats_(seats) {
  for (Seat& seat : seats_) seat.since = now;
}

TimeLedger::Bucket TimeLedger::BucketOf(SeatState state) {
  switch (state) {
    case SeatState::kRunning: return kInside;
    case SeatState::kReady:
    case SeatState::kParked: return kBetween;
    case SeatState::kStarting: return kStarting;
    case SeatState::kStopping: return kStopping;
    case SeatState::kEmpty:
    case SeatState::kFinished:
    case SeatState::kLeft:
    case SeatState::kDead: return kEmpty;
  }
  return kEmpty;
}

void TimeLedger::Note(Seat& seat, TimePoint now) {
  seat.spent[BucketOf(seat.state)] += now - seat.since;
  seat.since = now;
}

void TimeLedger::OnSeats(const std::vector<SeatRecord>& seats, TimePoint now) {
  for (size_t i = 0; !over_ && i < std::min(seats.size(), seats_.size()); ++i) {
    Seat& seat = seats_[i];
    // A job's first worker counts as foreign until it says that it is in place.
    if (seat.state == SeatState::kRunning && seats[i].state == SeatState::kStarting &&
        seat.worker == seats[i].worker) {
      seat.state = SeatState::kStarting;
    }
    if (seat.state != seats[i].state) {
      Note(seat, now);
      seat.state = seats[i].state;
    }
    if (seat.worker == seats[i].worker) continue;
    seat.worker = seats[i].worker;
    seat.steps += std::exchange(seat.worker_steps, Duration(0));
    seat.evaluating += std::exchange(seat.worker_evaluating, Duration(0));
    seat.made += std::exchange(seat.worker_made, 0);
    seat.worker_tells = false;
  }
}

void TimeLedger::Lose(Seat& seat, int64_t steps) {
  const int64_t count = seat.made + seat.worker_made - seat.lost;
  steps = std::clamp<int64_t>(steps, 0, count);
  if (steps == 0) return;
  const Duration time = seat.steps + seat.worker_steps - seat.lost_time;
  seat.lost_time += std::chrono::duration_cast<Duration>(
      time * (static_cast<double>(steps) / static_cast<double>(count)));
  seat.lost += steps;
}

void TimeLedger::OnFigures(size_t index, const FiguresMessage& figures) {
  Seat& seat = seats_[index];
  seat.told = true;
  if (figures.steps > 0) {
    // Where a worker begins tells what those before it have made in vain.
    Lose(seat, seat.furthest - (figures.step - (seat.worker_tells ? 0 : figures.steps)));
    seat.furthest = figures.step;
    seat.worker_tells = true;
  }
  seat.worker_made = std::max(seat.worker_made, figures.steps);
  Duration steps{0};
  for (const auto& [part, nanos] : figures.parts) steps += Duration(nanos);
  seat.worker_steps = std::max(seat.worker_steps, steps);
  seat.worker_evaluating = std::max(seat.worker_evaluating, Duration(figures.evaluating_ns));
}

void TimeLedger::OnEnd(TimePoint now) {
  if (std::exchange(over_, true)) return;
  for (Seat& seat : seats_) Note(seat, now);
}

WorkerTime TimeLedger::Sum(TimePoint now) const {
  WorkerTime time;
  for (Seat seat : seats_) {
    if (!over_) Note(seat, now);
    // A worker's own figures are believed up to the time that it was inside an epoch.
    const Duration inside = seat.spent[kInside];
    const Duration steps = std::min(seat.steps + seat.worker_steps - seat.lost_time, inside);
    const Duration evaluating =
        std::min(seat.evaluating + seat.worker_evaluating, inside - steps);
    time.knows_steps |= seat.told;
    time.steps += steps;
    time.evaluating += evaluating;
    time.beside_steps += inside - steps - evaluating;
    time.between_epochs += seat.spent[kBetween];
    time.starting += seat.spent[kStarting];
    time.stopping += seat.spent[kStopping];
    time.no_worker += seat.spent[kEmpty];
  }
  return time;
}

}  // namespace keel
