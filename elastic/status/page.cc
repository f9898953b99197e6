// Section by section, from the newest to the less important.
#include "elastic/status/page.h"

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "elastic/report/blame_words.h"
#include "elastic/status/charts.h"
#include "elastic/status/html.h"
#include "elastic/status/page_parts.h"

namespace keel {
namespace {

constexpr size_t kEventsShown = 200;
constexpr size_t kWorkersShown = 1024;

std::string Number(int64_t number) { return number < 0 ? "&ndash;" : std::to_string(number); }

std::string Cell(const std::string& text, const char* of = "") {
  return *of == '\0' ? "<td>" + text + "</td>"
                     : "<td class=\"" + std::string(of) + "\">" + text + "</td>";
}

std::string Card(const std::string& name, const std::string& value, const std::string& note = "") {
  return "<div><span>" + name + "</span><b>" + value + "</b><span>" + note + "</span></div>\n";
}

std::string Since(int64_t begin, int64_t end) {
  return DurationText(Duration(std::max<int64_t>(end - begin, 0)));
}

// In whole seconds, so that the page's figures do not flicker.
std::string RoughlySince(int64_t begin, int64_t end) {
  constexpr int64_t kSecond = 1'000'000'000;
  return Since(0, std::max<int64_t>((end - begin) / kSecond, 0) * kSecond);
}

std::string Head(const JobStatus& status) {
  const StatusJob& job = status.job();
  const std::string state(status.state());
  return "<header><h1>" + HtmlText(job.name) + "</h1><span class=\"pill " + state + "\">" + state +
         "</span><span class=\"note\">" + HtmlText(job.program) + " &middot; seen from " +
         HtmlText(job.host) + " &middot; store at " + HtmlText(job.store) + "</span></header>\n";
}

std::string FiguresCards(const JobStatus& status, const FiguresMessage& newest) {
  const auto rate = status.samples_per_s();
  std::string cards = Card("loss", newest.loss ? ShortText(*newest.loss) : "not finite");
  cards += Card("samples/s", rate ? ShortText(*rate) : Number(-1));
  if (!status.checkpoints().empty()) {
    const StatusCheckpoint& saved = status.checkpoints().back();
    cards += Card("checkpoint", Number(saved.step), "at " + TimeOfDayText(saved.wall_nanos));
  }
  if (status.time().knows_steps) {
    cards += Card("goodput of this host", FixedText(100 * status.time().Goodput(), 1) + "%");
  }
  return cards;
}

std::string Cards(const JobStatus& status, int64_t now) {
  const StatusEpoch* const running = status.running();
  std::string cards = "<div class=\"cards\">\n";
  const std::string duration =
      running == nullptr ? "none is running" : "for " + RoughlySince(running->begun_nanos, now);
  cards += Card("epoch", Number(status.epochs().empty() ? -1 : status.epochs().back().number),
                duration);
  cards += Card("workers", running == nullptr ? "0" : Number(running->workers),
                running == nullptr    ? ""
                : running->hosts == 1 ? "on 1 host"
                                      : "on " + Number(running->hosts) + " hosts");
  cards += Card("step", Number(status.step()));
  if (status.newest()) cards += FiguresCards(status, *status.newest());
  cards += Card("running for", RoughlySince(status.job().started_nanos, now));
  return cards + "</div>\n";
}

std::string Timeline(const JobStatus& status, int64_t now) {
  const std::string shown =
      status.epochs_total() == 0 ? "None yet. " : Number(status.epochs_total()) + " so far. ";
  return "<section><h2>Epochs</h2>\n" + TimelineSvg(status, now) + "<p class=\"note\">" + shown +
         "The height of a bar is the number of workers in the epoch; red epochs were broken. Below "
         "them: workers that died and hosts that are gone (red), notices and stops (amber), "
         "checkpoints (green)."
         "</p></section>\n";
}

std::string Curves(const JobStatus& status, int64_t now) {
  if (status.points().empty()) return "";
  return "<section><h2>Loss</h2>\n" + LossSvg(status, now) +
         "<h2>Samples per second</h2>\n" + ThroughputSvg(status, now) + "</section>\n";
}

std::string StepTimes(const JobStatus& status) {
  if (status.trends().empty()) return "";
  double longest = 0;
  for (const StatusTrend& trend : status.trends()) longest = std::max(longest, StepMillis(trend));
  std::string rows;
  for (const StatusTrend& trend : status.trends()) {
    rows += "<tr>" + Cell(Number(static_cast<int64_t>(trend.now.index)), "n") +
            Cell(Number(trend.now.rank), "n") + Cell(Number(trend.now.told.steps), "n") +
            Cell(FixedText(StepMillis(trend), 2), "n") +
            Cell(PartsSvg(trend, longest), "bar") + "</tr>\n";
  }
  return "<section><h2>Step times of this host's workers</h2>\n<p class=\"note\">" +
         PartsKeySvg(status.trends().front()) +
         "</p><table><tr><th class=\"n\">seat</th><th class=\"n\">rank</th>"
         "<th class=\"n\">steps</th><th class=\"n\">ms per step</th><th></th></tr>\n" +
         rows + "</table></section>\n";
}

// How the time of this host's seats was spent.
std::string TimeSpent(const JobStatus& status) {
  const WorkerTime& time = status.time();
  const Duration total = time.Total();
  if (total <= Duration(0)) return "";
  std::string rows;
  for (const TimePart& each : kTimeParts) {
    const Duration part = time.*each.part;
    const double share = static_cast<double>(part.count()) / static_cast<double>(total.count());
    if (part == Duration(0)) continue;
    const bool is_all_inside = !time.knows_steps && each.part == &WorkerTime::beside_steps;
    rows += "<tr>" + Cell(is_all_inside ? "in epochs" : std::string(each.words)) +
            Cell(FixedText(100 * share, 1) + "%", "n") + Cell(DurationText(part), "n") + "</tr>\n";
  }
  return "<section><h2>Where the worker time of this host went</h2>\n<table>" + rows +
         "</table></section>\n";
}

std::string Checkpoints(const JobStatus& status) {
  if (status.checkpoints().empty()) return "";
  constexpr size_t kShown = 10;
  std::string rows;
  const auto& all = status.checkpoints();
  for (size_t i = 0; i < std::min(all.size(), kShown); ++i) {
    const StatusCheckpoint& one = all[all.size() - 1 - i];
    rows += "<tr>" + Cell(TimeOfDayText(one.wall_nanos), "t") + Cell(Number(one.step), "n") +
            "</tr>\n";
  }
  return "<section><h2>Checkpoints</h2>\n<table><tr><th>UTC</th><th class=\"n\">step</th></tr>\n" +
         rows + "</table><p class=\"note\">" + Number(status.checkpoints_total()) +
         " so far, as reported by the workers of this host.</p></section>\n";
}

std::string HostState(const StatusHost& host) {
  if (!host.gone.empty()) return "<span class=\"bad\">gone</span>: " + HtmlText(host.gone);
  const std::string reason =
      host.record.reason.empty() ? "" : ": " + HtmlText(host.record.reason);
  switch (host.record.state) {
    case MemberState::kMember:
      if (host.record.unfit.empty()) {
        return "<span class=\"good\">here</span>" +
               std::string(host.record.health == kHealthGood ? ", found fit" : "");
      }
      return "<span class=\"bad\">unfit</span>: " + HtmlText(host.record.unfit);
    case MemberState::kLeaving: return "leaving" + reason;
    case MemberState::kLeft: return "left" + reason;
  }
  return "";
}

std::string SeatRow(const StatusHost& host, size_t index, bool is_first) {
  const SeatRecord& seat = host.record.seats[index];
  const std::string name = HtmlText(host.record.host) + (host.is_here ? " (this one)" : "");
  const std::string ended =
      seat.ended.empty()
          ? ""
          : "<span class=\"dim\">last worker " + HtmlText(seat.ended) + "</span>";
  return "<tr>" + Cell(is_first ? name : "") + Cell(is_first ? HtmlText(host.record.address) : "") +
         Cell(is_first ? HostState(host) : "") + Cell(std::to_string(index), "n") +
         Cell(Number(seat.rank), "n") + Cell(std::string(SeatStateName(seat.state))) +
         Cell(Number(seat.position.step), "n") + Cell(ended) + "</tr>\n";
}

std::string Members(const JobStatus& status) {
  std::string rows;
  size_t shown = 0;
  size_t all = 0;
  for (const StatusHost& host : status.hosts()) {
    if (!host.gone.empty()) {
      rows += "<tr>" + Cell(HtmlText(host.record.host)) + Cell(HtmlText(host.record.address)) +
              "<td colspan=\"6\">" + HostState(host) + "</td></tr>\n";
      continue;
    }
    all += host.record.seats.size();
    for (size_t i = 0; i < host.record.seats.size() && shown < kWorkersShown; ++i, ++shown) {
      rows += SeatRow(host, i, i == 0);
    }
  }
  std::string note = status.job().sees_all
                         ? ""
                         : "<p class=\"note\">Only this host is shown: the page of the host that "
                           "coordinates shows all.</p>";
  if (shown < all) note += "<p class=\"note\">" + std::to_string(all - shown) + " more.</p>";
  return "<section><h2>Members</h2>\n<table><tr><th>host</th><th>address</th><th>state</th>"
         "<th class=\"n\">seat</th><th class=\"n\">rank</th><th>worker</th>"
         "<th class=\"n\">step</th><th></th></tr>\n" +
         rows + "</table>" + note + "</section>\n";
}

// A host of which nothing is to be told has no row.
std::string Blame(const JobStatus& status) {
  std::string rows;
  for (const StatusHost& host : status.hosts()) {
    const HostBlame& blame = host.record.blame;
    if (blame == HostBlame() && host.record.health.empty()) continue;
    const std::string health = host.record.health.empty() ? "not checked" : host.record.health;
    rows += "<tr>" + Cell(HtmlText(host.record.host)) + Cell(DeathsText(blame)) +
            Cell(std::to_string(blame.checks.rechecks), "n") +
            Cell(std::to_string(blame.checks.differences),
                 blame.checks.differences > 0 ? "n bad" : "n") +
            Cell(std::to_string(blame.checks.slow_steps), "n") + Cell(HtmlText(health)) +
            "</tr>\n";
  }
  if (rows.empty()) return "";
  return "<section><h2>Hosts</h2>\n<table><tr><th>host</th><th>deaths</th>"
         "<th class=\"n\">comparisons</th><th class=\"n\">different</th>"
         "<th class=\"n\">slow steps</th><th>health check</th></tr>\n" +
         rows + "</table></section>\n";
}

const char* ClassOf(const StatusEvent& event) {
  for (const char* kind : {"break", "death", "host-gone", "store-lost", "host-shunned"}) {
    if (event.kind == kind) return "bad";
  }
  return event.kind == "epoch" || event.kind == "saved" ? "good" : "";
}

std::string Events(const JobStatus& status) {
  const auto& events = status.events();
  const size_t shown = std::min(events.size(), kEventsShown);
  std::string rows;
  for (size_t i = 0; i < shown; ++i) {
    const StatusEvent& event = events[events.size() - 1 - i];
    rows += "<tr>" + Cell(TimeOfDayText(event.wall_nanos), "t") + Cell(Number(event.epoch), "n") +
            Cell(HtmlText(event.kind), ClassOf(event)) + Cell(HtmlText(event.text)) + "</tr>\n";
  }
  const std::string left_out =
      status.events_total() > static_cast<int64_t>(shown)
          ? "<p class=\"note\">The newest " + std::to_string(shown) + " of " +
                std::to_string(status.events_total()) + "; the launcher's log has all.</p>"
          : "";
  return "<section><h2>Events</h2>\n<table><tr><th>UTC</th><th class=\"n\">epoch</th>"
         "<th>what</th><th></th></tr>\n" +
         rows + "</table>" + left_out + "</section>\n";
}

}  // namespace

std::string StatusPageText(const JobStatus& status, int64_t now_nanos, const std::string& nonce) {
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         HtmlText(status.job().name) + ": " + std::string(status.state()) +
         "</title>\n<style nonce=\"" + nonce + "\">" + std::string(kStatusStyle) +
         "</style></head>\n<body>\n<div id=\"lost\" hidden>keelrun does not answer: the job may "
         "have ended. Below is the last known state.</div>\n<main id=\"all\">\n" +
         Head(status) + Cards(status, now_nanos) + Timeline(status, now_nanos) +
         Curves(status, now_nanos) + StepTimes(status) + Members(status) + Blame(status) +
         TimeSpent(status) +
         Checkpoints(status) + Events(status) + "</main>\n<script nonce=\"" + nonce + "\">" +
         std::string(kStatusScript) + "</script>\n</body></html>\n";
}

std::string StatusPagePolicy(const std::string& nonce) {
  return "default-src 'none'; img-src data:; style-src 'nonce-" + nonce + "'; script-src 'nonce-" +
         nonce + "'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

}  // namespace keel
