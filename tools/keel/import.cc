// `keel import IN DIR`: a checkpoint made from a safetensors file.
#include "base/file_helpers.h"
#include "base/random.h"
#include "base/text.h"
#include "ckpt/removal.h"
#include "ckpt/safetensors_file.h"
#include "ckpt/save.h"
#include "tools/keel/choose_tensors.h"
#include "tools/keel/commands.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/safetensors_metadata.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

// Tensors as they lie in the file.
class FileSource : public TensorSource {
 public:
  FileSource(const SafetensorsFile& file, const std::vector<ChosenTensor>& chosen)
      : file_(file), chosen_(chosen) {}

  const std::byte* Borrow(size_t, uint64_t, size_t) override { return nullptr; }
  Status Read(size_t tensor, uint64_t offset, std::span<std::byte> into) override {
    KEEL_TRY(file_.Read(chosen_.at(tensor).index, offset, into));
    return chosen_[tensor].spec.dtype == Dtype::kBool ? CheckBools(tensor, offset, into) : Ok();
  }

 private:
  // Programs take what is no 0 for true, but compare, add and print it as what it is.
  Status CheckBools(size_t tensor, uint64_t first, std::span<const std::byte> bytes) const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] <= std::byte{1}) continue;
      return Error{Code::kCorrupt, file_.path() + ": tensor " + Shown(chosen_[tensor].spec.name) +
                                       ", element " + std::to_string(first + i) + ": " +
                                       std::to_string(std::to_integer<int>(bytes[i])) +
                                       " is not a bool, which is 0 or 1"};
    }
    return Ok();
  }

  const SafetensorsFile& file_;
  const std::vector<ChosenTensor>& chosen_;
};

std::vector<TensorSpec> AllSpecs(const SafetensorsHeader& header) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsTensor& tensor : header.tensors) specs.push_back(tensor.spec);
  return specs;
}

Result<Description> DescribeImport(const SafetensorsHeader& header,
                                   const std::vector<ChosenTensor>& chosen,
                                   const Options& options) {
  Description description;
  KEEL_TRY(FromSafetensorsMetadata(header.metadata, &description));
  if (options.Has("step")) description.step = static_cast<uint64_t>(options.Integer("step"));
  KEEL_TRY_ASSIGN(description.codec, ParseCodec(options.Text("codec")));
  KEEL_TRY_ASSIGN(description.layout, Layout::Make(SpecsOf(chosen)));
  return description;
}

Result<CommitReport> SaveFrom(const World& world, const SafetensorsFile& file,
                              const std::vector<ChosenTensor>& chosen, SavePlan plan,
                              int threads) {
  const std::string step_dir = JoinPath(plan.root, StepDirName(plan.description.step));
  ProgressBar bar(world);
  FileSource source(file, chosen);
  auto report = SaveCheckpoint(world.files, std::move(plan), source,
                               {.compress_threads = threads, .progress = bar.progress()},
                               world.clock.WallNanos());
  // Earlier imports of this step that were killed have left files in its directory.
  SweepDeadAttempts(world.files, step_dir);
  if (report.ok() || report.error().code != Code::kExists) return report;
  return Error{Code::kExists, report.error().message + "; --step gives another number"};
}

}  // namespace

OptionTable ImportTable() {
  OptionTable table = CommandTable(
      "import",
      "Makes a checkpoint in DIR from a file of the safetensors format. Its __metadata__ becomes "
      "the user's keys; what keel export wrote there becomes metadata again. A file that is cut "
      "short or makes no sense is refused; changed bits in it cannot be seen, since the format has "
      "no digests.",
      "IN DIR", "");
  table.Add(Option::Integer("step", 0,
                            "The checkpoint's step (default: that of the export, else 0)")
                .AtLeast(0)
                .Optional());
  table.Add(Option::Choice("codec", {"planes", "zstd", "none"}, "planes", "How to compress"));
  table.Add(Option::Integer("threads", 2, "How many threads compress").Range(1, 1024));
  AddChoiceOptions(&table);
  table.AddExample("keel import model.safetensors runs/new", "Begin a run with these weights");
  table.AddExample("keel import model.safetensors runs/new --step 500 --rename '*=model.*'",
                   "Import as step 500, with a prefix before each name");
  return table;
}

Result<Outcome> RunImport(const World& world, const Options& options) {
  const std::string& in = options.positionals()[0];
  KEEL_TRY_ASSIGN(const auto file, SafetensorsFile::Open(world.files, in));
  const auto chosen = ChooseTensors(AllSpecs(file->header()), options);
  if (!chosen.ok()) return chosen.error().Doing(in);
  auto description = DescribeImport(file->header(), *chosen, options);
  if (!description.ok()) return description.error().Doing(in);
  Random random(EntropySeed());
  SavePlan plan{.root = options.positionals()[1],
                .attempt = NewAttempt(random),
                .description = *std::move(description)};
  const uint64_t step = plan.description.step;
  const std::string attempt = plan.attempt;
  KEEL_TRY_ASSIGN(const CommitReport report,
                  SaveFrom(world, *file, *chosen, std::move(plan),
                           static_cast<int>(options.Integer("threads"))));
  return Outcome{{{"file", in},
                  {"dir", report.step_dir},
                  {"step", step},
                  {"attempt", attempt},
                  {"tensors", chosen->size()},
                  {"content_bytes", report.content_bytes},
                  {"stored_bytes", report.stored_bytes}},
                 "saved " + report.step_dir + ": " + CountText(chosen->size(), "tensor") + ", " +
                     BytesText(report.content_bytes) + " in " + BytesText(report.stored_bytes) +
                     "\n"};
}

}  // namespace keel
