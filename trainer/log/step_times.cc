// Adds part by part.
#include "trainer/step_times.h"

namespace keel {

StepTimes& StepTimes::operator+=(const StepTimes& other) {
  for (const StepPart& each : kStepParts) this->*each.part += other.*each.part;
  return *this;
}

}  // namespace keel
