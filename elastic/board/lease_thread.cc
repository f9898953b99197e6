// The thread owns all that it uses together with this object, so that it may end later.
#include "elastic/board/lease_thread.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

// At the end, for what is under way.
constexpr Duration kEndLimit = std::chrono::milliseconds(500);

}  // namespace

struct LeaseThread::Shared {
  // Only the thread uses these.
  std::unique_ptr<Lease> lease;
  std::unique_ptr<LeaseHand> hand;

  std::mutex mutex;
  std::condition_variable changed;
  // mutex guards these.
  LeaseTask task;
  std::vector<std::function<void(LeaseHand& hand)>> jobs;
  std::function<void(const LinkView& view)> on_news;   // null: nobody listens any more
  LinkView view;
  TimePoint seen_at;         // when `view` was made
  bool is_woken = true;
  bool is_ending = false;
  bool has_ended = false;
};

LeaseThread::LeaseThread(std::unique_ptr<Lease> lease, Clock& clock, std::string incarnation,
                         LeaseHand::Look look_at,
                         std::function<void(const LinkView& view)> on_news)
    : shared_(std::make_shared<Shared>()) {
  shared_->lease = std::move(lease);
  shared_->hand = std::make_unique<LeaseHand>(*shared_->lease, clock, std::move(incarnation),
                                              std::move(look_at));
  shared_->on_news = std::move(on_news);
  shared_->view = shared_->hand->View();
  StartQuietThread("lease", [shared = shared_] { Run(shared); }).detach();
}

LeaseThread::~LeaseThread() {
  std::unique_lock lock(shared_->mutex);
  shared_->is_ending = true;
  shared_->on_news = nullptr;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kEndLimit, [this] { return shared_->has_ended; });
}

void LeaseThread::Run(const std::shared_ptr<Shared>& shared) {
  Shared& own = *shared;
  std::unique_lock lock(own.mutex);
  TimePoint next{};
  LinkView told = own.view;
  while (!own.is_ending) {
    const std::vector<std::function<void(LeaseHand&)>> jobs = std::exchange(own.jobs, {});
    const LeaseTask task = own.task;
    own.is_woken = false;
    lock.unlock();
    for (const auto& job : jobs) job(*own.hand);
    next = own.hand->Poll(task);
    LinkView view = own.hand->View();
    lock.lock();
    own.view = view;
    own.seen_at = RealClock().Monotonic();
    // Told under the lock, so that nothing is told once the destructor has begun.
    if (view != told && own.on_news) own.on_news(view);
    told = view;
    const auto woken = [&] { return own.is_woken || own.is_ending || !own.jobs.empty(); };
    if (next == kNever) {
      own.changed.wait(lock, woken);
    } else {
      own.changed.wait_for(lock, next - RealClock().Monotonic(), woken);
    }
  }
  own.has_ended = true;
  own.changed.notify_all();
}

void LeaseThread::SetTask(LeaseTask task) {
  const std::lock_guard lock(shared_->mutex);
  if (task == shared_->task) return;
  shared_->task = std::move(task);
  shared_->is_woken = true;
  shared_->changed.notify_all();
}

// A thread that hangs tells nothing new, so what it has told grows old.
LinkView LeaseThread::View() const {
  const std::lock_guard lock(shared_->mutex);
  LinkView view = shared_->view;
  const Duration age = RealClock().Monotonic() - shared_->seen_at;
  if (view.is_seen && age >= kLeaseFormLimit) {
    view.is_seen = false;
    view.detail = "its place has not answered for " + DurationText(age);
  }
  return view;
}

Status LeaseThread::Do(std::function<Status(LeaseHand& hand)> job) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Status> status;
  };
  const auto answer = std::make_shared<Answer>();
  {
    const std::lock_guard lock(shared_->mutex);
    // Whoever has the answer sees what has come of it.
    shared_->jobs.push_back([job = std::move(job), answer, shared = shared_](LeaseHand& hand) {
      Status status = job(hand);
      {
        const std::lock_guard seen(shared->mutex);
        shared->view = hand.View();
        shared->seen_at = RealClock().Monotonic();
      }
      const std::lock_guard lock(answer->mutex);
      answer->status = std::move(status);
      answer->changed.notify_all();
    });
    shared_->changed.notify_all();
  }
  std::unique_lock lock(answer->mutex);
  if (answer->changed.wait_for(lock, kClaimLimit, [&] { return answer->status.has_value(); })) {
    return *answer->status;
  }
  return Error{Code::kTimeout, "the place of the job's lease does not answer"};
}

Status LeaseThread::Claim(const LinkRecord& link, int64_t after) {
  return Do([link, after](LeaseHand& hand) { return hand.Claim(link, after); });
}

void LeaseThread::Release() {
  (void)Do([](LeaseHand& hand) {
    hand.Release();
    return Ok();
  });
}

}  // namespace keel
