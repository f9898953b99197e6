// Schedules in whole numbers: fractions of 2^60, so that no rounding depends on the host's libm or
// on whether a compiler fuses a multiplication and an addition.
#include "trainer/schedule.h"

#include <set>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/text.h"

namespace keel {
namespace {

using Wide = __int128;
constexpr int kBits = 60;
constexpr int64_t kOne = int64_t{1} << kBits;

int64_t Times(int64_t a, int64_t b) { return static_cast<int64_t>((Wide{a} * b) >> kBits); }

int64_t FixedOf(double fraction) { return static_cast<int64_t>(fraction * 0x1p60); }
double DoubleOf(int64_t fixed) { return static_cast<double>(fixed) * 0x1p-60; }

// cos(t * pi/2) for 0 <= t <= 1: Taylor's series until its terms vanish.
int64_t CosineOfQuarters(int64_t t) {
  constexpr int64_t kHalfPi = 1811004864519280711;  // round(pi/2 * 2^60)
  const int64_t angle = Times(t, kHalfPi);
  const int64_t square = Times(angle, angle);
  int64_t sum = kOne;
  int64_t term = kOne;
  for (int64_t n = 2; term != 0; n += 2) {
    term = Times(term, square) / (n * (n - 1));
    sum += n % 4 == 2 ? -term : term;
  }
  return sum < 0 ? 0 : sum;
}

// Multiplications alone, in a fixed order; no pow().
double Power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

}  // namespace

double Schedule::Factor(uint64_t step) const {
  if (step < warmup_) return static_cast<double>(step + 1) / static_cast<double>(warmup_);
  return Fall(step);
}

double Schedule::Fall(uint64_t step) const {
  if (kind_ == Kind::kConstant) return 1;
  if (kind_ == Kind::kStep) return Power(factor_, (step - warmup_) / every_);
  if (step >= total_) return min_;
  const auto past = static_cast<int64_t>((Wide{step - warmup_} << kBits) / (total_ - warmup_));
  int64_t left = kOne - past;
  if (kind_ == Kind::kCosine) {
    // (1 + cos(pi t)) / 2 is the square of cos(pi t / 2).
    const int64_t root = CosineOfQuarters(past);
    left = Times(root, root);
  }
  const int64_t min = FixedOf(min_);
  return DoubleOf(min + Times(kOne - min, left));
}

std::string Schedule::Text() const {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::string& value) {
    parts.push_back(std::string(name) + "=" + value);
  };
  if (warmup_ > 0) add("warmup", std::to_string(warmup_));
  if (kind_ == Kind::kCosine || kind_ == Kind::kLinear) {
    add("total", std::to_string(total_));
    add("min", NumberText(min_));
  }
  if (kind_ == Kind::kStep) {
    add("every", std::to_string(every_));
    add("factor", NumberText(factor_));
  }
  const char* const names[] = {"constant", "cosine", "linear", "step"};
  const std::string name = names[static_cast<size_t>(kind_)];
  return parts.empty() ? name : name + ":" + JoinList(parts);
}

// Reads "kind:name=value,name=value"; each error quotes the whole text.
class ScheduleParser {
 public:
  explicit ScheduleParser(std::string_view text) : text_(text) {}

  Result<Schedule> Parse() {
    const size_t colon = text_.find(':');
    KEEL_TRY(ReadKind(Trim(text_.substr(0, colon))));
    if (colon != std::string_view::npos) {
      for (const std::string& part : SplitList(text_.substr(colon + 1))) KEEL_TRY(ReadPart(part));
    }
    KEEL_TRY(CheckWhole());
    return schedule_;
  }

 private:
  using Kind = Schedule::Kind;

  Error Wrong(const std::string& why) const {
    return {Code::kInvalid, "schedule " + Shown(text_) + ": " + why};
  }

  Status ReadKind(std::string_view name) {
    const std::vector<std::pair<std::string, Kind>> kinds = {{"constant", Kind::kConstant},
                                                             {"cosine", Kind::kCosine},
                                                             {"linear", Kind::kLinear},
                                                             {"step", Kind::kStep}};
    std::vector<std::string> names;
    for (const auto& [known, kind] : kinds) {
      if (known == name) {
        schedule_.kind_ = kind;
        return Ok();
      }
      names.push_back(known);
    }
    return Wrong("there is no kind " + Shown(name) + DidYouMean(name, names) +
                 " (the kinds are " + JoinList(names, ", ") + ")");
  }

  std::vector<std::string> Known() const {
    if (schedule_.kind_ == Kind::kConstant) return {"warmup"};
    if (schedule_.kind_ == Kind::kStep) return {"warmup", "every", "factor"};
    return {"warmup", "total", "min"};
  }

  Status ReadPart(const std::string& part) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos) return Wrong(Shown(part) + " is not of the form name=value");
    const std::string name(Trim(std::string_view(part).substr(0, equals)));
    const std::string value(Trim(std::string_view(part).substr(equals + 1)));
    const std::vector<std::string> known = Known();
    if (std::set<std::string>(known.begin(), known.end()).count(name) == 0) {
      return Wrong("it has no " + Shown(name) + DidYouMean(name, known) + " (it has " +
                   JoinList(known, ", ") + ")");
    }
    if (!given_.insert(name).second) return Wrong(name + " is given twice");
    if (name == "warmup") return ReadSteps(name, value, 0, schedule_.warmup_);
    if (name == "total") return ReadSteps(name, value, 1, schedule_.total_);
    if (name == "every") return ReadSteps(name, value, 1, schedule_.every_);
    return ReadFraction(name, value, name == "min" ? schedule_.min_ : schedule_.factor_);
  }

  Status ReadSteps(const std::string& name, const std::string& value, int64_t least,
                   uint64_t& into) {
    const Result<int64_t> steps = ParseInteger(value);
    if (!steps.ok() || *steps < least) {
      return Wrong(name + " is " + Shown(value) + ", not a number of steps of at least " +
                   std::to_string(least));
    }
    into = static_cast<uint64_t>(*steps);
    return Ok();
  }

  Status ReadFraction(const std::string& name, const std::string& value, double& into) {
    const Result<double> number = ParseNumber(value);
    if (!number.ok() || *number < 0 || *number > 1) {
      return Wrong(name + " is " + Shown(value) + ", not a number from 0 to 1");
    }
    into = *number;
    return Ok();
  }

  Status CheckWhole() const {
    for (const std::string& name : Known()) {
      const bool optional = name == "warmup" || name == "min";
      if (!optional && given_.count(name) == 0) return Wrong(name + " is missing");
    }
    const bool ends = schedule_.kind_ == Kind::kCosine || schedule_.kind_ == Kind::kLinear;
    if (ends && schedule_.total_ <= schedule_.warmup_) {
      return Wrong("total is " + std::to_string(schedule_.total_) + ", but the warm-up alone " +
                   "takes " + std::to_string(schedule_.warmup_) + " steps");
    }
    return Ok();
  }

  const std::string_view text_;
  Schedule schedule_;
  std::set<std::string> given_;
};

Result<Schedule> Schedule::Parse(std::string_view text) { return ScheduleParser(text).Parse(); }

}  // namespace keel
