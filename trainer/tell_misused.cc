// The first and last word of a worker.
#include "trainer/tell_misused.h"

#include "base/clock.h"
#include "base/environment.h"
#include "elastic/protocol/exit_codes.h"
#include "elastic/worker_link.h"

namespace keel {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(5);

}  // namespace

// Who does not hear it starts another worker, which says it again.
void TellMisused(const std::string& why) {
  const auto link = WorkerLink::FromEnvironment(OwnEnvironment());
  if (!link.ok()) return;
  (void)(*link)->Send(ByeMessage{kExitRefused, why});
  (void)(*link)->Flush(RealClock().Monotonic() + kFlushLimit);
}

}  // namespace keel
