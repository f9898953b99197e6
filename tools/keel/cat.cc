// `keel cat CKPT TENSOR`: the values of one tensor, or of a slice of it.

#include "base/nearest.h"
#include "base/text.h"
#include "ckpt/catalog.h"
#include "tools/keel/commands.h"
#include "tools/keel/element_walk.h"
#include "tools/keel/npy.h"
#include "tools/keel/numbers.h"
#include "tools/keel/output_stream.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/value_lines.h"
#include "tools/keel/value_output.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

constexpr uint64_t kJsonValuesMax = 100'000;

// What is to be shown, and how.
struct Work {
  std::unique_ptr<Checkpoint> checkpoint;
  size_t tensor = 0;
  std::string slice_text;
  Slice slice;
  std::string path;  // empty: stdout
  bool is_npy = false;
  bool is_json = false;

  const TensorSpec& spec() const { return checkpoint->layout().tensors()[tensor].spec; }
};

Result<size_t> FindTensor(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.layout().Find(name);
  if (found.has_value()) return *found;
  std::vector<std::string> names;
  for (const PlacedTensor& tensor : checkpoint.layout().tensors()) {
    names.push_back(tensor.spec.name);
  }
  return Error{Code::kNotFound, checkpoint.dir() + " holds no tensor " + Shown(name) +
                                    DidYouMean(name, names) + " (keel inspect lists all " +
                                    std::to_string(names.size()) + ")"};
}

Result<Work> FindWork(const World& world, const Options& options) {
  Work work;
  work.path = options.Text("output");
  if (!work.path.empty() && IsStdout(work.path)) work.path.clear();
  work.is_npy = options.Text("format") == "npy";
  work.is_json = options.Flag("json");
  work.slice_text = options.Text("slice");
  const bool to_stdout = work.path.empty();
  if (to_stdout && work.is_npy && work.is_json) {
    return Error{Code::kInvalid, "--format npy and --json would both go to stdout: add --output"};
  }
  if (to_stdout && work.is_npy && world.prints_to_terminal) {
    return Error{Code::kInvalid, "a .npy file cannot be shown on a terminal: add --output FILE, "
                                 "or redirect stdout"};
  }
  KEEL_TRY_ASSIGN(work.checkpoint, OpenCheckpoint(world.files, options.positionals()[0]));
  KEEL_TRY_ASSIGN(work.tensor, FindTensor(*work.checkpoint, options.positionals()[1]));
  const auto slice = Slice::Parse(work.slice_text, work.spec().shape);
  if (!slice.ok()) return slice.error().Doing("tensor " + Shown(work.spec().name));
  work.slice = *slice;
  return work;
}

Json Facts(const Work& work) {
  return {{"dir", work.checkpoint->dir()},
          {"tensor", work.spec().name},
          {"dtype", DtypeName(work.spec().dtype)},
          {"slice", work.slice_text},
          {"shape", work.slice.shape()}};
}

Json ElementJson(Dtype dtype, const std::byte* at) {
  const Dtype lane = LaneDtype(dtype);
  if (IsComplex(dtype)) {
    return Json::array({RealJson(NumberAt(lane, at)),
                        RealJson(NumberAt(lane, at + DtypeBytes(lane)))});
  }
  if (IsFloat(lane)) return RealJson(NumberAt(lane, at));
  if (dtype == Dtype::kBool) return NumberAt(lane, at) != 0;
  // All 64 bits, through the text.
  const auto number = ParseJson(ElementText(dtype, at));
  return number.ok() ? *number : Json();
}

// Takes as many of `values` as the shape from `axis` on holds.
Json Nested(const std::vector<int64_t>& shape, size_t axis, std::vector<Json>* values,
            size_t* next) {
  if (axis == shape.size()) return std::move(values->at((*next)++));
  Json list = Json::array();
  for (int64_t i = 0; i < shape[axis]; ++i) list.push_back(Nested(shape, axis + 1, values, next));
  return list;
}

Result<Outcome> ValuesAsJson(const Work& work) {
  const std::vector<int64_t> shape = work.slice.shape();
  // An empty tensor may still be a list of 2^60 empty lists.
  uint64_t lists = 1;
  bool is_too_much = false;
  for (const int64_t size : shape) {
    const uint64_t of_each = std::max<uint64_t>(1, static_cast<uint64_t>(size));
    is_too_much = is_too_much || of_each > kJsonValuesMax / lists;
    if (!is_too_much) lists *= of_each;
  }
  if (is_too_much) {
    return Error{Code::kInvalid, "shape " + ShapeText(shape) + " is too much for --json, which "
                                 "prints at most " + std::to_string(kJsonValuesMax) +
                                     " values: add a --slice, or --output FILE"};
  }
  const Dtype dtype = work.spec().dtype;
  std::vector<Json> values;
  KEEL_TRY(WalkElements(*work.checkpoint, work.tensor, work.slice, nullptr,
                        [&](std::span<const std::byte> elements) -> Status {
                          for (size_t at = 0; at < elements.size(); at += DtypeBytes(dtype)) {
                            values.push_back(ElementJson(dtype, elements.data() + at));
                          }
                          return Ok();
                        }));
  Outcome outcome;
  outcome.json = Facts(work);
  size_t next = 0;
  outcome.json["values"] = Nested(shape, 0, &values, &next);
  return outcome;
}

Status Stream(const World& world, const Work& work, ValueOutput* output) {
  const Dtype dtype = work.spec().dtype;
  ValueLines lines(dtype, work.slice.shape());
  if (work.is_npy) *output->buffer() += NpyHeader(dtype, work.slice.shape());
  // A bar between the lines of a terminal, or over those of a pager, would be in the way.
  World shown = world;
  shown.shows_progress = world.shows_progress && !work.path.empty();
  ProgressBar bar(shown);
  bar.progress()->bytes_total = work.slice.count() * DtypeBytes(dtype);
  KEEL_TRY(WalkElements(*work.checkpoint, work.tensor, work.slice, bar.progress(),
                        [&](std::span<const std::byte> elements) {
                          if (work.is_npy) {
                            AppendNpyValues(dtype, elements, output->buffer());
                          } else {
                            lines.Append(elements, output->buffer());
                          }
                          return output->Flush();
                        }));
  return output->Finish();
}

}  // namespace

OptionTable CatTable() {
  OptionTable table = CommandTable(
      "cat",
      "Prints the values of a tensor or of a part of it, each row of the last dimension on a line "
      "(with one dimension, each value), with all the digits that distinguish a number from its "
      "neighbours. Every value is verified before it is shown. As .npy, bf16 and f8 become f32, "
      "which holds them exactly, since numpy lacks them.",
      "CKPT TENSOR", "");
  table.Add(Option::Text("slice", "",
                         "Which elements, as in numpy: '0:10, 3', '::2', '..., -1'; a step may be "
                         "negative. Use the form --slice=-1: if it begins with a dash")
                .Placeholder("SLICE"));
  table.Add(Option::Choice("format", {"text", "npy"}, "text",
                           "text: lines of numbers; npy: a file that numpy reads"));
  table.Add(Option::Text("output", "",
                         "Write to this file, which appears only when it is complete; a device or "
                         "a pipe is written to from front to back")
                .Placeholder("FILE"));
  table.AddExample("keel cat runs/one model.layer0.weight --slice '0:3, :8'",
                   "The first eight numbers of three rows");
  table.AddExample("keel cat runs/one@60 model.layer0.bias --format npy --output bias.npy",
                   "For numpy.load()");
  table.AddExample("keel cat runs/one model.layer0.bias --json | jq .values", "For a script");
  return table;
}

Result<Outcome> RunCat(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(const Work work, FindWork(world, options));
  if (work.is_json && work.path.empty()) return ValuesAsJson(work);
  KEEL_TRY_ASSIGN(const auto output, ValueOutput::Open(world, work.path));
  const Status streamed = Stream(world, work, output.get());
  if (!streamed.ok() && !(work.path.empty() && streamed.error().code == Code::kPeerLost)) {
    return streamed.error();
  }
  if (work.path.empty()) return Outcome{};
  Outcome outcome;
  outcome.json = Facts(work);
  outcome.json["file"] = work.path;
  outcome.json["format"] = options.Text("format");
  outcome.json["bytes"] = output->bytes();
  outcome.text = work.path + ": " + CountText(work.slice.count(), "value") + " of " +
                 TypeText(work.spec()) + ", " + BytesText(output->bytes()) + "\n";
  return outcome;
}

}  // namespace keel
