// A list, and a second look where it says that nothing is there.
#include "trainer/save/steps_in.h"

#include <optional>
#include <utility>

#include "base/object_files.h"
#include "trainer/save/ask_aside.h"

namespace keel {
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
  std::optional<Steps> steps = AskAside<Steps>("keel-list", limit, tick, [&files, root] {
    return StepsIn(files, root);
  });
  if (steps) return *std::move(steps);
  return Error{Code::kTimeout, root + " has not answered within " + DurationText(limit)};
}

}  // namespace keel
