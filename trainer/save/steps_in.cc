// A list, and a second look where it says that nothing is there.
#include "trainer/save/steps_in.h"

#include <future>
#include <memory>
#include <utility>

#include "base/object_files.h"
#include "elastic/process/quiet_thread.h"

namespace keel {
namespace {

constexpr Duration kListTick = std::chrono::seconds(1);

}  // namespace

Result<std::vector<StepEntry>> StepsIn(Files& files, const std::string& root) {
  if (root.empty()) return std::vector<StepEntry>{};
  Result<std::vector<StepEntry>> listed = ListSteps(files, root);
  if (listed.ok() || listed.error().code != Code::kNotFound) return listed;
  // A missing module and a server that is no store may say "not found", too.
  const auto unknown = [&](const Error& error) { return Error{Code::kIo, error.message}; };
  const Result<BucketPlace> place = files.Bucket(root);
  if (!place.ok()) return unknown(place.error());
  if (place->bucket == nullptr) return std::vector<StepEntry>{};
  const auto seen = place->bucket->List(PrefixOf(*place), Objects::Depth::kToSlash);
  if (!seen.ok()) return unknown(seen.error());
  if (seen->objects.empty() && seen->prefixes.empty()) return std::vector<StepEntry>{};
  return ListSteps(files, root);
}

Result<std::vector<StepEntry>> StepsWithin(Files& files, const std::string& root, Duration limit,
                                           const std::function<void()>& tick) {
  using Steps = Result<std::vector<StepEntry>>;
  auto promise = std::make_shared<std::promise<Steps>>();
  std::future<Steps> answer = promise->get_future();
  StartQuietThread("keel-list", [promise, &files, root] {
    promise->set_value(StepsIn(files, root));
  }).detach();
  const auto is_there = [&] {
    return answer.wait_for(kListTick) == std::future_status::ready;
  };
  for (Duration waited{0}; !is_there(); waited += kListTick) {
    if (waited >= limit) {
      return Error{Code::kTimeout, root + " has not answered within " + DurationText(limit)};
    }
    tick();
  }
  return answer.get();
}

}  // namespace keel
