// First whoever is there already, then the own board.
#include "elastic/decisions/beside.h"

namespace keel {

BesideStep DecideBeside(const BesideView& view) {
  using Verdict = BesideStep::Verdict;
  const std::string store = "the store at " + view.endpoint + " is that of job '" + view.keeper;
  const bool is_own = view.posted && view.own && view.posted->by == view.self &&
                      view.posted->address == view.own->address;
  if (is_own) return {Verdict::kFollow, *view.own, store + "', and names the board of this host"};
  if (view.posted && view.is_there) {
    return {Verdict::kFollow, *view.posted,
            store + "', and names the board of job '" + view.job + "'"};
  }
  if (view.posted && !view.is_gone && view.silent_for < view.patience) {
    return {Verdict::kWait, {}, store + "'; it names the board of job '" + view.job + "' at " +
                                    view.posted->address + ", which does not answer; after " +
                                    DurationText(view.patience) +
                                    " of that another board takes its place"};
  }
  if (view.own) return {Verdict::kPost, *view.own, store + "'"};
  if (view.may_open) {
    return {Verdict::kOpen, {.term = 1, .by = view.self},
            store + "', so job '" + view.job + "' has its board on this host"};
  }
  return {Verdict::kWait, {}, store + "', and the launcher that is to keep the one of job '" +
                                  view.job + "' has not come to it"};
}

}  // namespace keel
