// Reports as JSON; the plan by comparing steps.
#include "trainer/state/reform.h"

#include <algorithm>
#include <bit>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "trainer/numerics/fingerprint.h"

namespace keel {
namespace {

constexpr int64_t kDoubtsMax = 1000;   // others tell it

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// Numbers are written by their bits.
struct Bits {
  static Json Write(const std::vector<float>& values) { return BitsOf(values); }
  static Status Read(const Json& object, const char* name, std::vector<float>& into) {
    KEEL_TRY_ASSIGN(const auto bits, Field<std::vector<int64_t>>(object, name));
    for (const int64_t one : bits) {
      into.push_back(std::bit_cast<float>(static_cast<uint32_t>(one)));
    }
    return Ok();
  }
};

// Texts by names that only the user knows.
struct NamedTexts {
  static Json Write(const std::map<std::string, std::string>& texts) { return texts; }
  static Status Read(const Json& object, const char* name,
                     std::map<std::string, std::string>& into) {
    KEEL_TRY_ASSIGN(const Json* const texts, ObjectField(object, name));
    for (const auto& [key, value] : texts->items()) {
      KEEL_TRY_ASSIGN(into[key], Field<std::string>(*texts, key));
    }
    return Ok();
  }
};

std::string RankText(size_t rank) { return "rank " + std::to_string(rank); }

// All that differ from the first one, by name: a plan of half of them would be no plan.
Status CheckLayouts(const std::vector<MemberReport>& reports) {
  std::vector<std::string> others;
  for (size_t rank = 1; rank < reports.size(); ++rank) {
    if (reports[rank].layout != reports[0].layout) others.push_back(RankText(rank));
  }
  if (others.empty()) return Ok();
  return Error{Code::kInvalid, JoinList(others, ", ") +
                                   " and rank 0 train different models: names, types or shapes of "
                                   "the state differ; run the same program with the same options "
                                   "everywhere"};
}

Status CheckTrails(const std::vector<MemberReport>& reports, const ReformPlan& plan) {
  const MemberReport& source = reports[static_cast<size_t>(plan.source)];
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    if (plan.parts[rank] != Part::kReady || reports[rank].trail == source.trail) continue;
    return Error{Code::kCorrupt, RankText(rank) + " and " +
                                     RankText(static_cast<size_t>(plan.source)) +
                                     " disagree on what happened up to step " +
                                     std::to_string(plan.step) + ": their trails are " +
                                     reports[rank].trail + " and " + source.trail};
  }
  return Ok();
}

bool AreAlike(const std::vector<MemberReport>& reports) {
  return std::all_of(reports.begin(), reports.end(), [&](const MemberReport& report) {
    return report.fingerprint == reports[0].fingerprint;
  });
}

int64_t InexactSince(const std::vector<MemberReport>& reports, const ReformPlan& plan) {
  int64_t earliest = -1;
  for (const MemberReport& report : reports) {
    const bool earlier = earliest < 0 || report.inexact_since < earliest;
    if (report.inexact_since >= 0 && earlier) earliest = report.inexact_since;
  }
  return earliest < 0 && !plan.alike ? plan.step : earliest;
}

Part PartOf(const MemberReport& report, int64_t furthest) {
  if (report.step == furthest) return Part::kReady;
  const bool one_behind = report.step >= 0 && report.step + 1 == furthest;
  return one_behind && report.pending ? Part::kApplies : Part::kReceives;
}

// Trails are compared apart. Members of other numerics may come to other bits by the same steps.
bool IsProved(const std::vector<MemberReport>& reports, const ReformPlan& plan) {
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    if (plan.parts[rank] == Part::kCatchesUp) continue;
    if (plan.parts[rank] == Part::kReceives || !reports[rank].compared) return false;
  }
  return plan.alike;
}

// Other kernels may build another model of the same seed. Nothing is lost yet.
void LetOneBegin(ReformPlan* plan) {
  for (size_t rank = 0; rank < plan->parts.size(); ++rank) {
    if (static_cast<int>(rank) != plan->source) plan->parts[rank] = Part::kReceives;
  }
}

// Who catches up computes no lanes meanwhile, so this is for few among many. Where nobody has made
// a step with the others yet, all wait for the first one anyway.
bool MayCatchUp(const std::vector<MemberReport>& reports, const ReformPlan& plan) {
  const auto lacking = std::count(plan.parts.begin(), plan.parts.end(), Part::kReceives);
  const bool few = lacking > 0 && static_cast<size_t>(lacking) * 2 <= reports.size();
  const bool begun = std::any_of(reports.begin(), reports.end(), [](const MemberReport& report) {
    return report.step > 0 && report.compared;
  });
  // All shall look at a step that is in doubt, or of which results differed that were not judged.
  const bool differed = std::any_of(reports.begin(), reports.end(), [](const MemberReport& report) {
    return report.step >= 0 && report.unproven;
  });
  const bool doubted = plan.doubts > 0 || (differed && plan.recheck_every != 0);
  return few && begun && !doubted && plan.alike &&
         std::all_of(reports.begin(), reports.end(),
                     [](const MemberReport& report) { return report.by_parts; });
}

std::string ReasonOf(const ReformPlan& plan) {
  const auto count = [&](Part part) {
    return std::to_string(std::count(plan.parts.begin(), plan.parts.end(), part));
  };
  return "step " + std::to_string(plan.step) + ": " + count(Part::kReady) + " ready, " +
         count(Part::kApplies) + " apply gradients they hold, " + count(Part::kReceives) +
         " receive the state" +
         (plan.catches_up() ? ", " + count(Part::kCatchesUp) + " catch up beside the others" : "");
}

// Whose state counts: of those furthest, the first.
size_t FurthestOf(const std::vector<MemberReport>& reports) {
  const auto behind = [](const MemberReport& a, const MemberReport& b) { return a.step < b.step; };
  const auto furthest = std::max_element(reports.begin(), reports.end(), behind);   // the first
  return static_cast<size_t>(furthest - reports.begin());
}

// Between two fingerprints; empty: none.
std::string DifferencesOf(const std::string& found, size_t rank, const std::string& wanted,
                          size_t model) {
  if (found == wanted) return "";
  const std::string who = RankText(rank), whose = RankText(model);
  const auto ours = Fingerprint::Parse(found), theirs = Fingerprint::Parse(wanted);
  if (ours.ok() && theirs.ok()) {
    return Differences(*ours, *theirs, {.ours = who, .theirs = whose});
  }
  return Shown(found) + " in " + who + " and " + Shown(wanted) + " in " + whose;
}

}  // namespace

template <>
struct JsonFields<MemberReport> {
  static void Visit(auto& field, auto& report) {
    field("step", report.step);
    field("pending", report.pending);
    field("layout", report.layout);
    field("trail", report.trail);
    field("compared", report.compared);
    field("by_parts", report.by_parts);
    field("doubts", report.doubts);
    field("unproven", report.unproven);
    field("recheck_every", report.recheck_every);
    field("numbers", report.numbers);
    field("inexact_since", report.inexact_since);
    field("fingerprint", report.fingerprint);
    field("together", report.together);
    field("beginning", report.beginning);
    field("directory", report.directory);
    field("save_every", report.save_every);
    field("codec", report.codec);
    field("config", report.config, NamedTexts());
    field("lane_ns", report.lane_ns);
    field("link_ns", report.link_ns);
    field("last_losses", report.last_losses, Bits());
  }
};

bool MemberReport::operator==(const MemberReport& other) const {
  return step == other.step && pending == other.pending && layout == other.layout &&
         trail == other.trail && compared == other.compared && by_parts == other.by_parts &&
         doubts == other.doubts && unproven == other.unproven &&
         recheck_every == other.recheck_every && numbers == other.numbers &&
         inexact_since == other.inexact_since && fingerprint == other.fingerprint &&
         together == other.together && beginning == other.beginning &&
         directory == other.directory && save_every == other.save_every && codec == other.codec &&
         config == other.config && lane_ns == other.lane_ns && link_ns == other.link_ns &&
         BitsOf(last_losses) == BitsOf(other.last_losses);
}

std::string WhyUnfit(const std::vector<MemberReport>& reports, size_t rank) {
  const size_t model = FurthestOf(reports);
  const std::string differences =
      DifferencesOf(reports[rank].fingerprint, rank, reports[model].fingerprint, model);
  if (differences.empty()) return "";
  return RankText(rank) + " has another numerics fingerprint: " + differences +
         "; give it the same torch, device, program and options, or --allow-inexact";
}

std::string WhyApart(const std::vector<MemberReport>& reports, size_t rank) {
  const size_t model = FurthestOf(reports);
  const bool beginning = NobodyHolds(reports);
  const auto text = [&](size_t of) {
    const MemberReport& report = reports[of];
    return beginning ? report.together + " " + report.beginning : report.together;
  };
  const std::string differences = DifferencesOf(text(rank), rank, text(model), model);
  if (differences.empty()) return "";
  return RankText(rank) + " was started with other options: " + differences +
         "; start all workers with the same command";
}

bool NobodyHolds(const std::vector<MemberReport>& reports) {
  return std::all_of(reports.begin(), reports.end(),
                     [](const MemberReport& report) { return report.step < 0; });
}

std::string ReportText(const MemberReport& report) {
  Json json;
  WriteFields(json, report);
  return DumpJson(json);
}

Result<MemberReport> ParseReport(std::string_view text) {
  MemberReport report;
  const auto read = [&]() -> Status {
    KEEL_TRY_ASSIGN(const Json json, ParseJson(text));
    return ReadFields(json, report);
  };
  const Status status = read();
  if (status.ok()) return report;
  return Error{Code::kCorrupt, "a member's report: " + status.error().message};
}

bool ReformPlan::catches_up() const {
  return std::find(parts.begin(), parts.end(), Part::kCatchesUp) != parts.end();
}

Result<ReformPlan> PlanReform(const std::vector<MemberReport>& reports) {
  KEEL_TRY(CheckLayouts(reports));
  int64_t furthest = MemberReport::kSpoiled;
  for (const MemberReport& report : reports) furthest = std::max(furthest, report.step);
  if (furthest == MemberReport::kSpoiled) {
    return Error{Code::kCorrupt, "no worker that is left has the whole state: all " +
                                     std::to_string(reports.size()) +
                                     " workers were still receiving it"};
  }
  ReformPlan plan;
  plan.step = std::max<int64_t>(furthest, 0);
  plan.alike = AreAlike(reports);
  for (const MemberReport& report : reports) plan.parts.push_back(PartOf(report, furthest));
  const auto first = std::find(plan.parts.begin(), plan.parts.end(), Part::kReady);
  plan.source = static_cast<int>(first - plan.parts.begin());
  KEEL_TRY(CheckTrails(reports, plan));
  if (plan.step == 0 && !plan.alike) LetOneBegin(&plan);
  const bool any_never = std::any_of(reports.begin(), reports.end(), [](const auto& report) {
    return report.recheck_every == 0;
  });
  plan.recheck_every = any_never ? 0 : reports.front().recheck_every;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const MemberReport& report = reports[rank];
    if (report.step == plan.step) {
      plan.doubts = std::max(plan.doubts, std::min(report.doubts, kDoubtsMax));
    }
    plan.unproven |= report.unproven || plan.parts[rank] == Part::kReceives;
  }
  if (MayCatchUp(reports, plan)) {
    std::replace(plan.parts.begin(), plan.parts.end(), Part::kReceives, Part::kCatchesUp);
  }
  plan.inexact_since = InexactSince(reports, plan);
  plan.proved = IsProved(reports, plan);
  plan.reason = ReasonOf(plan);
  return plan;
}

}  // namespace keel
