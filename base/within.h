// Within: asks a question whose answer may never come, such as one to a name service or to a file
// system whose server is gone.
// Promises   returns within the limit, with the answer or with nothing.
// Does not   stop the asking: it goes on in a thread of its own until the system gives up, so the
//            question must hold all that it needs, or refer to what lives as long as the process.
// Threads    any.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace keel {

template <class T>
std::optional<T> Within(Duration limit, std::function<T()> question) {
  struct Pending {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<T> answer;
  };
  auto pending = std::make_shared<Pending>();
  try {
    std::thread([pending, question = std::move(question)] {
      T answer = question();
      const std::lock_guard lock(pending->mutex);
      pending->answer = std::move(answer);
      pending->done.notify_all();
    }).detach();
  } catch (const std::system_error&) {   // no thread is to be had just now
    return std::nullopt;
  }
  std::unique_lock lock(pending->mutex);
  pending->done.wait_for(lock, limit, [&] { return pending->answer.has_value(); });
  return std::move(pending->answer);
}

}  // namespace keel
