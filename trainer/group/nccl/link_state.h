// The states of a link over NCCL, and what leads from one to the next. All of it is this table:
//
//   state         | ready   enqueue     done   failed    abort     leave       stopped
//   initialising  | ready   -           -      aborting  aborting  aborting    -
//   ready         | -       enqueueing  -      failed    revoking  finalising  -
//   enqueueing    | -       -           ready  failed    aborting  aborting    -
//   failed        | -       -           -      -         aborting  aborting    -
//   finalising    | -       -           -      aborting  aborting  -           aborting
//   revoking      | -       -           -      aborting  -         -           aborting
//   aborting      | -       -           gone   gone      -         -           -
//   gone          | -       -           -      -         -         -           -
//
// `-` leaves it as it is. NCCL revokes only what has been initialised and is not being finalised;
// and where a call of it has not been done, or has failed, revoking loses that call's own work.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace keel {

enum class LinkState {
  kInitialising, kReady, kEnqueueing, kFailed, kFinalising, kRevoking, kAborting, kGone
};
enum class LinkEvent { kReady, kEnqueue, kDone, kFailed, kAbort, kLeave, kStopped };

inline constexpr std::array<std::string_view, 8> kLinkStateNames = {
    "initialising", "ready", "enqueueing", "failed", "finalising", "revoking", "aborting", "gone"};
inline std::string_view NameOf(LinkState state) {
  return kLinkStateNames[static_cast<size_t>(state)];
}

constexpr bool IsOneOf(LinkEvent event, std::initializer_list<LinkEvent> events) {
  return std::find(events.begin(), events.end(), event) != events.end();
}

constexpr LinkState After(LinkState state, LinkEvent event) {
  using S = LinkState;
  using E = LinkEvent;
  switch (state) {
    case S::kInitialising:
      if (event == E::kReady) return S::kReady;
      return IsOneOf(event, {E::kFailed, E::kAbort, E::kLeave}) ? S::kAborting : state;
    case S::kReady:
      if (event == E::kEnqueue) return S::kEnqueueing;
      if (event == E::kFailed) return S::kFailed;
      if (event == E::kAbort) return S::kRevoking;
      return event == E::kLeave ? S::kFinalising : state;
    case S::kEnqueueing:
      if (event == E::kDone) return S::kReady;
      if (event == E::kFailed) return S::kFailed;
      return IsOneOf(event, {E::kAbort, E::kLeave}) ? S::kAborting : state;
    case S::kFailed:
      return IsOneOf(event, {E::kAbort, E::kLeave}) ? S::kAborting : state;
    case S::kFinalising:
      return IsOneOf(event, {E::kFailed, E::kAbort, E::kStopped}) ? S::kAborting : state;
    case S::kRevoking:
      return IsOneOf(event, {E::kStopped, E::kFailed}) ? S::kAborting : state;
    case S::kAborting:
      return IsOneOf(event, {E::kDone, E::kFailed}) ? S::kGone : state;
    case S::kGone:
      return state;
  }
  return state;
}

}  // namespace keel
