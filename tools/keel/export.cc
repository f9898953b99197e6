// `keel export CKPT OUT`: a checkpoint's tensors as a safetensors file.
#include "base/text.h"
#include "ckpt/catalog.h"
#include "ckpt/safetensors_file.h"
#include "tools/keel/choose_tensors.h"
#include "tools/keel/commands.h"
#include "tools/keel/output_stream.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/safetensors_metadata.h"
#include "tools/keel/tensor_walk.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

std::vector<TensorSpec> AllSpecs(const Layout& layout) {
  std::vector<TensorSpec> specs;
  for (const PlacedTensor& placed : layout.tensors()) specs.push_back(placed.spec);
  return specs;
}

// Tensors go one after the other, a frame at a time, each byte checked against its digests.
Status CopyTensors(const World& world, const Checkpoint& checkpoint,
                   const std::vector<ChosenTensor>& chosen, const SafetensorsHeader& header,
                   SafetensorsWriter* writer) {
  std::map<std::string_view, size_t> index_of;
  for (const ChosenTensor& tensor : chosen) index_of[tensor.spec.name] = tensor.index;
  ProgressBar bar(world);
  bar.progress()->bytes_total = header.data_bytes();
  TensorReader reader(checkpoint);
  for (const SafetensorsTensor& tensor : header.tensors) {
    KEEL_TRY(WalkTensor(
        checkpoint, &reader, index_of.at(tensor.spec.name), bar.progress(),
        [&](uint64_t, std::span<const std::byte> bytes) { return writer->Append(bytes); }));
  }
  return writer->Commit();
}

Result<std::unique_ptr<SafetensorsWriter>> OpenWriter(Files& files, const std::string& out,
                                                      bool replace,
                                                      const SafetensorsHeader& header) {
  KEEL_TRY_ASSIGN(auto stream, OpenOutputStream(files, out));
  if (stream != nullptr) return SafetensorsWriter::Stream(std::move(stream), header);
  RemoveOutputLeftovers(files, out);
  return SafetensorsWriter::Begin(files, {out, NewOutputId(), replace}, header);
}

}  // namespace

OptionTable ExportTable() {
  OptionTable table = CommandTable(
      "export",
      "Writes a checkpoint's tensors to a file of the safetensors format, which Python and others "
      "read, on a disk or in a bucket. Every byte is verified on its way; OUT appears only when it "
      "is whole. The user's keys go into its __metadata__ as they are, the step as 'keel.step' and "
      "the rest as 'keel.metadata.NAME', so that keel import can bring them back. A 'format' of "
      "'pt' is added where there is none, since loaders of Hugging Face ask for it.",
      "CKPT OUT", "");
  AddChoiceOptions(&table);
  table.Add(Option::Flag("force", false, "Replace OUT if it is there"));
  table.AddExample("keel export runs/bert bert.safetensors", "All of the newest checkpoint");
  table.AddExample("keel export s3://my-bucket/bert s3://my-bucket/bert.safetensors",
                   "From a bucket into a bucket");
  table.AddExample(
      "keel export runs/bert@1200 bert.safetensors --only 'model.*' --rename 'model.*=*'",
      "The model alone, without the prefix");
  return table;
}

Result<Outcome> RunExport(const World& world, const Options& options) {
  const std::string& out = options.positionals()[1];
  KEEL_TRY_ASSIGN(const auto checkpoint,
                  OpenCheckpoint(world.files, options.positionals()[0]));
  const Description& description = checkpoint->manifest().description;
  KEEL_TRY_ASSIGN(const auto chosen, ChooseTensors(AllSpecs(checkpoint->layout()), options));
  KEEL_TRY_ASSIGN(const SafetensorsHeader header,
                  MakeSafetensorsHeader(SpecsOf(chosen), ToSafetensorsMetadata(description)));
  const auto writer = OpenWriter(world.files, out, options.Flag("force"), header);
  if (!writer.ok()) {
    Error error = writer.error();
    if (error.code == Code::kExists) error.message += "; keel export --force replaces it";
    return error;
  }
  KEEL_TRY(CopyTensors(world, *checkpoint, chosen, header, writer->get()));
  Outcome outcome{{{"dir", checkpoint->dir()},
                   {"step", description.step},
                   {"out", out},
                   {"tensors", header.tensors.size()},
                   {"content_bytes", header.data_bytes()},
                   {"file_bytes", (*writer)->file_bytes()}},
                  "wrote " + out + ": " + CountText(header.tensors.size(), "tensor") +
                      " of step " + std::to_string(description.step) + ", " +
                      BytesText(header.data_bytes()) + "\n"};
  if (IsStdout(out)) return Outcome{};  // words, or JSON, would be part of the file
  return outcome;
}

}  // namespace keel
