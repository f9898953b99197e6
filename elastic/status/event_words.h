// EventWords: in which words the status page tells what happens at a launcher.
// Does not   tell epochs, breaks and checkpoints: the page has lists of these.
// Threads    any.
#pragma once

#include <optional>
#include <string>

#include "elastic/report/launcher_event.h"

namespace keel {

struct EventWords {
  std::string kind;   // one of few, since each is counted for ever
  std::string text;
};

// Empty: the page does not tell it in words.
std::optional<EventWords> WordsOf(const LauncherEvent& event);

}  // namespace keel
