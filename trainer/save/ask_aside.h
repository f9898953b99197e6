// AskAside: asks a store or disk that may never answer, while the caller shows that it is alive.
// Promises   returns within the limit, with the answer or with nothing. What the question holds is
//            released before the answer is given.
// Does not   stop the asking: it goes on in a quiet thread of its own, so what the question refers
//            to must live as long as the process.
// Threads    any.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "elastic/process/quiet_thread.h"

namespace keel {

// The answer, once it comes.
template <class T>
std::future<T> StartAsking(const std::string& thread, std::function<T()> question) {
  auto promise = std::make_shared<std::promise<T>>();
  std::future<T> answer = promise->get_future();
  StartQuietThread(thread, [promise, question = std::move(question)]() mutable {
    T answered = question();
    question = nullptr;
    promise->set_value(std::move(answered));
  }).detach();
  return answer;
}

// `tick` is called each second, in the caller's thread.
template <class T>
std::optional<T> AskAside(const std::string& thread, Duration limit,
                          const std::function<void()>& tick, std::function<T()> question) {
  constexpr Duration kTick = std::chrono::seconds(1);
  std::future<T> answer = StartAsking(thread, std::move(question));
  for (Duration waited{0}; answer.wait_for(kTick) != std::future_status::ready; waited += kTick) {
    if (waited >= limit) return std::nullopt;
    tick();
  }
  return answer.get();
}

}  // namespace keel
