// AddUpAround: a small all-reduce among the doctors of all hosts, around a ring of plain TCP
// connections, with its duration.
// Promises   each host checks that its final sum is right; ends by its deadline.
// Does not   measure Gloo or NCCL, which this part of the project does not know: it tells whether
//            numbers get from host to host, whole and in both directions, and how fast.
// Threads    one. Errors: in the result's `trouble`.
#pragma once

#include <string>
#include <vector>

#include "elastic/doctor/findings.h"
#include "elastic/doctor/port.h"

namespace keel {

struct RingPlace {
  size_t place = 0;            // our place among the `size` hosts
  size_t size = 1;
  std::string next_address;    // of the host after us
  uint16_t next_port = 0;
};
DoctorSum AddUpAround(const RingPlace& ring, const std::string& round, DoctorPort& port,
                      Clock& clock, TimePoint deadline);

}  // namespace keel
