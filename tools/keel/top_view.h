// TopView: a watched job as lines of a screen, of what its status page tells at /api.
// Promises   pure; as many lines as there is room for, none wider than the screen. What the page
//            does not tell is '-'; texts of others cannot confuse a terminal.
// Does not   ask anybody, or know a terminal.
// Threads    pure functions and plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/keel/paint.h"

namespace keel {

enum class TopSort { kRank, kHost, kState, kStep, kDeaths };

struct TopChoice {
  TopSort sort = TopSort::kRank;
  bool is_reversed = false;
  size_t skipped = 0;         // workers above the first one that is shown
  bool shows_help = false;
  size_t skipped_most = SIZE_MAX;   // what the screen leaves out (KeepInView)
};

// Changes the choice as a key says; kQuit and kRefresh are left to the caller.
enum class TopKey { kNone, kQuit, kRefresh, kChanged };
TopKey PressTopKey(char key, TopChoice* choice);
// Arrow keys as the letters that mean the same; what is no key is left out.
std::string KeysOf(std::string_view typed);

struct TopScreen {
  size_t width = 80;
  size_t height = 24;         // 0: as many lines as there are
};

// What is shown: the newest answer, and the one before it, which tells how fast the job goes.
struct TopAnswers {
  Json newest = Json::object();
  Json before = Json::object();
  std::string trouble;        // why there is none now; empty: there is
  std::map<double, double> step_ms = {};   // as shown before the newest, by local rank
};

// What a page answers now becomes the newest.
void TakeAnswer(Json answer, TopAnswers* answers);

// Holds what is skipped within what there is to skip, also for the keys that come next. To be
// called before it is drawn.
void KeepInView(const TopAnswers& answers, const TopScreen& screen, TopChoice* choice);

std::vector<std::string> TopLines(const TopAnswers& answers, const TopChoice& choice,
                                  const TopScreen& screen, const Paint& paint);

}  // namespace keel
