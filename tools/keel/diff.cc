// `keel diff A B`: in what two checkpoints differ.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "base/text.h"
#include "ckpt/catalog.h"
#include "tools/keel/commands.h"
#include "tools/keel/numbers.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/tensor_walk.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

struct Tolerance {
  double absolute = 0;
  double relative = 0;
  bool is_exact() const { return absolute == 0 && relative == 0; }
};

struct ValueDiff {
  uint64_t elements = 0;  // that differ
  uint64_t first = 0;     // of those, its index in the flattened tensor
  double greatest = 0;    // of the differences between numbers
  long double sum = 0;    // which the greatest of f64 do not overflow
  uint64_t numbers = 0;   // all, also the equal ones; two for each complex element
  double mean() const {
    return numbers == 0 ? 0 : static_cast<double>(sum / static_cast<long double>(numbers));
  }
};

// Exact, although a double may not hold the numbers themselves.
template <class T>
double WholeDistance(const std::byte* a, const std::byte* b) {
  T left{}, right{};
  std::memcpy(&left, a, sizeof left);
  std::memcpy(&right, b, sizeof right);
  const auto [least, most] = std::minmax(left, right);
  return static_cast<double>(static_cast<uint64_t>(most) - static_cast<uint64_t>(least));
}

double DistanceOf(Dtype dtype, const std::byte* a, const std::byte* b) {
  if (dtype == Dtype::kI64) return WholeDistance<int64_t>(a, b);
  if (dtype == Dtype::kU64) return WholeDistance<uint64_t>(a, b);
  return std::fabs(NumberAt(dtype, a) - NumberAt(dtype, b));
}

// Whether two numbers of different bits pass for the same. Bit-exact: never.
bool IsNear(double a, double b, double distance, const Tolerance& tolerance) {
  if (tolerance.is_exact()) return false;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return distance <= tolerance.absolute + tolerance.relative * std::fabs(b);
}

void CompareElement(Dtype dtype, const std::byte* a, const std::byte* b, uint64_t index,
                    const Tolerance& tolerance, ValueDiff* diff) {
  const Dtype lane = LaneDtype(dtype);
  bool is_same = true;
  for (uint32_t at = 0; at < DtypeBytes(dtype); at += DtypeBytes(lane)) {
    if (std::memcmp(a + at, b + at, DtypeBytes(lane)) == 0) continue;
    const double left = NumberAt(lane, a + at);
    const double right = NumberAt(lane, b + at);
    const double distance = DistanceOf(lane, a + at, b + at);
    is_same = is_same && IsNear(left, right, distance, tolerance);
    if (std::isnan(distance)) continue;
    diff->greatest = std::max(diff->greatest, distance);
    diff->sum += distance;
  }
  if (is_same) return;
  if (diff->elements++ == 0) diff->first = index;
}

struct Sides {
  const Checkpoint& a;
  const Checkpoint& b;
};

Result<ValueDiff> CompareValues(const Sides& sides, size_t in_a, size_t in_b,
                                const Tolerance& tolerance, Progress* progress) {
  const Dtype dtype = sides.a.layout().tensors()[in_a].spec.dtype;
  const uint32_t element = DtypeBytes(dtype);
  TensorReader reader(sides.b);
  std::vector<std::byte> other;
  ValueDiff diff;
  KEEL_TRY(WalkTensor(sides.a, in_a, progress,
                      [&](uint64_t offset, std::span<const std::byte> bytes) -> Status {
    other.resize(bytes.size());
    KEEL_TRY(reader.Read(in_b, offset, other));
    diff.numbers += bytes.size() / DtypeBytes(LaneDtype(dtype));
    if (std::memcmp(bytes.data(), other.data(), bytes.size()) == 0) return Ok();
    for (size_t at = 0; at < bytes.size(); at += element) {
      CompareElement(dtype, bytes.data() + at, other.data() + at, (offset + at) / element,
                     tolerance, &diff);
    }
    return Ok();
  }));
  return diff;
}

// "[2, 3]" of an index into the flattened tensor.
std::vector<int64_t> Unflatten(uint64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> place(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    place[i] = static_cast<int64_t>(index % static_cast<uint64_t>(shape[i]));
    index /= static_cast<uint64_t>(shape[i]);
  }
  return place;
}

void ReportChange(const TensorSpec& spec, const ValueDiff& diff, uint64_t elements, Outcome* to) {
  const auto place = Unflatten(diff.first, spec.shape);
  to->json["changed"].push_back({{"name", spec.name},
                                 {"differing", diff.elements},
                                 {"elements", elements},
                                 {"first", place},
                                 {"max", RealJson(diff.greatest)},
                                 {"mean", RealJson(diff.mean())}});
  to->text += "changed " + QuoteForLog(spec.name) + " " + TypeText(spec) + ": " +
              std::to_string(diff.elements) + " of " + std::to_string(elements) +
              " differ, first at " + ShapeText(place) + ", by at most " +
              NumberText(diff.greatest) + ", on average " + NumberText(diff.mean()) + "\n";
}

void ReportRetyped(const TensorSpec& a, const TensorSpec& b, Outcome* to) {
  to->json["retyped"].push_back({{"name", a.name}, {"a", TypeText(a)}, {"b", TypeText(b)}});
  to->text += "retyped " + QuoteForLog(a.name) + ": " + TypeText(a) + ", then " + TypeText(b) +
              "\n";
}

void ReportLonely(const char* what, const Layout& layout, const Layout& other, Outcome* to) {
  for (const PlacedTensor& tensor : layout.tensors()) {
    if (other.Find(tensor.spec.name).has_value()) continue;
    to->json[what].push_back(tensor.spec.name);
    to->text += std::string(what) + " " + QuoteForLog(tensor.spec.name) + " " +
                TypeText(tensor.spec) + "\n";
  }
}

// One group of what is no tensor, under names that say which group it is.
void CompareGroup(const Json& a, const Json& b,
                  const std::function<std::string(const std::string&)>& shown, Outcome* to) {
  std::set<std::string> names;
  for (const auto& [name, value] : a.items()) names.insert(name);
  for (const auto& [name, value] : b.items()) names.insert(name);
  for (const std::string& name : names) {
    const Json left = a.contains(name) ? a[name] : Json();
    const Json right = b.contains(name) ? b[name] : Json();
    if (DumpJson(left) == DumpJson(right)) continue;   // 1 and 1.0 are two values
    to->json["metadata"].push_back({{"name", shown(name)}, {"a", left}, {"b", right}});
    to->text += "metadata " + QuoteForLog(shown(name)) + ": " + DumpJson(left) + ", then " +
                DumpJson(right) + "\n";
  }
}

// Each group by itself: a user's key may be called as metadata are.
void CompareMetadata(const Sides& sides, Outcome* to) {
  const Description& a = sides.a.manifest().description;
  const Description& b = sides.b.manifest().description;
  CompareGroup({{"step", a.step}}, {{"step", b.step}}, [](const auto& name) { return name; }, to);
  CompareGroup(MetadataJson(a.metadata), MetadataJson(b.metadata),
               [](const auto& name) { return name == "step" ? "metadata step" : name; }, to);
  CompareGroup(UserJson(a), UserJson(b), [](const auto& name) { return "user " + name; }, to);
}

Status CompareTensors(const World& world, const Sides& sides, const Tolerance& tolerance,
                      Outcome* to) {
  ProgressBar bar(world);
  bar.progress()->bytes_total = sides.a.layout().tensor_bytes();
  for (size_t i = 0; i < sides.a.layout().tensors().size(); ++i) {
    const PlacedTensor& a = sides.a.layout().tensors()[i];
    const auto in_b = sides.b.layout().Find(a.spec.name);
    if (!in_b.has_value()) continue;
    const PlacedTensor& b = sides.b.layout().tensors()[*in_b];
    if (!(a.spec == b.spec)) {
      ReportRetyped(a.spec, b.spec, to);
      continue;
    }
    KEEL_TRY_ASSIGN(const ValueDiff diff,
                    CompareValues(sides, i, *in_b, tolerance, bar.progress()));
    if (diff.elements > 0) ReportChange(a.spec, diff, a.bytes / DtypeBytes(a.spec.dtype), to);
  }
  return Ok();
}

}  // namespace

OptionTable DiffTable() {
  OptionTable table = CommandTable(
      "diff",
      "Compares two checkpoints, bit for bit unless a tolerance is given. Shows tensors that were "
      "added or removed, that have another dtype, shape or values, and metadata that differ.",
      "A B", "they differ");
  table.Add(Option::Real("atol", 0, "Numbers that differ by at most this count as equal")
                .RealRange(0, 1e308));
  table.Add(Option::Real("rtol", 0, "The same, times the number in B; added to --atol. With "
                                    "either, two NaNs are equal")
                .RealRange(0, 1e308));
  table.Add(Option::Flag("metadata", true, "Compare the step, metadata and user keys too"));
  table.AddExample("keel diff runs/a@1200 runs/b@1200", "Whether two runs are the same to the bit");
  table.AddExample("keel diff runs/a runs/b --rtol 1e-5 --no-metadata",
                   "Whether their newest tensors are nearly the same");
  return table;
}

Result<Outcome> RunDiff(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(const auto a, OpenCheckpoint(world.files, options.positionals()[0]));
  KEEL_TRY_ASSIGN(const auto b, OpenCheckpoint(world.files, options.positionals()[1]));
  const Sides sides{*a, *b};
  Outcome outcome;
  outcome.json = {{"equal", true}, {"a", a->dir()}, {"b", b->dir()}};
  for (const char* list : {"added", "removed", "retyped", "changed", "metadata"}) {
    outcome.json[list] = Json::array();
  }
  ReportLonely("removed", a->layout(), b->layout(), &outcome);
  ReportLonely("added", b->layout(), a->layout(), &outcome);
  KEEL_TRY(CompareTensors(world, sides, {options.Real("atol"), options.Real("rtol")}, &outcome));
  if (options.Flag("metadata")) CompareMetadata(sides, &outcome);
  if (outcome.text.empty()) {
    outcome.text = "no difference\n";
  } else {
    outcome.exit_code = kExitNo;
    outcome.json["equal"] = false;
  }
  return outcome;
}

}  // namespace keel
