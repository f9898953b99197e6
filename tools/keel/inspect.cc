// `keel inspect CKPT`: what a checkpoint says about itself, and what its tensors are like.
#include <cmath>

#include "base/text.h"
#include "ckpt/catalog.h"
#include "tools/keel/commands.h"
#include "tools/keel/progress_bar.h"
#include "tools/keel/tensor_stats.h"
#include "tools/keel/text_table.h"
#include "tools/keel/wording.h"

namespace keel {
namespace {

struct TensorFacts {
  size_t tensor = 0;
  double stored_bytes = 0;  // its share of the frames that it lies in
  std::optional<TensorStats> stats;
};

std::vector<double> StoredShares(const Checkpoint& checkpoint) {
  const Layout& layout = checkpoint.layout();
  std::vector<double> stored(layout.tensors().size(), 0);
  for (uint64_t frame = 0; frame < layout.frame_count(); ++frame) {
    const auto place = checkpoint.Locate(frame);
    const IndexEntry& entry = place.shard->index()[place.index];
    for (const Piece& piece : layout.PiecesOf(frame)) {
      stored[piece.tensor] += static_cast<double>(entry.stored_bytes) * piece.bytes /
                              entry.content_bytes;
    }
  }
  return stored;
}

Json TensorsJson(const Checkpoint& checkpoint, const std::vector<TensorFacts>& facts) {
  Json list = Json::array();
  for (const TensorFacts& fact : facts) {
    Json json = TensorJson(checkpoint.layout().tensors()[fact.tensor]);
    json["stored_bytes"] = static_cast<uint64_t>(std::llround(fact.stored_bytes));
    json["digest"] = checkpoint.manifest().tensor_digests[fact.tensor].Hex();
    if (fact.stats.has_value()) json["stats"] = StatsJson(*fact.stats);
    list.push_back(std::move(json));
  }
  return list;
}

Json ToJson(const Checkpoint& checkpoint, const std::vector<TensorFacts>& facts) {
  const Manifest& manifest = checkpoint.manifest();
  Json shards = Json::array();
  for (const ManifestShard& shard : manifest.shards) {
    shards.push_back({{"file", shard.file},
                      {"bytes", shard.bytes},
                      {"frames", shard.frames.count},
                      {"digest", shard.digest.Hex()}});
  }
  return {{"dir", checkpoint.dir()},
          {"step", manifest.description.step},
          {"attempt", manifest.attempt},
          {"writer", manifest.description.writer},
          {"saved_at_ns", manifest.saved_at_ns},
          {"codec", CodecName(manifest.description.codec)},
          {"frame_bytes", checkpoint.layout().frame_bytes()},
          {"content_bytes", checkpoint.layout().tensor_bytes()},
          {"stored_bytes", checkpoint.stored_bytes()},
          {"metadata", MetadataJson(manifest.description.metadata)},
          {"user", UserJson(manifest.description)},
          {"shards", std::move(shards)},
          {"tensors", TensorsJson(checkpoint, facts)}};
}

std::string HeadText(const Checkpoint& checkpoint, const Paint& paint) {
  const Manifest& manifest = checkpoint.manifest();
  const uint64_t content = checkpoint.layout().tensor_bytes();
  std::string text = paint.Heading("step " + std::to_string(manifest.description.step)) + " in " +
                     checkpoint.dir() + "\n";
  text += "saved " + TimeText(manifest.saved_at_ns) + " UTC by " +
          Printable(manifest.description.writer) + ", attempt " + manifest.attempt + "\n";
  text += CountText(checkpoint.layout().tensors().size(), "tensor") + ", " + BytesText(content) +
          " in " + BytesText(checkpoint.stored_bytes()) + " (" +
          RatioText(checkpoint.stored_bytes(), content) + "), " +
          CountText(manifest.shards.size(), "shard") + ", codec " +
          std::string(CodecName(manifest.description.codec)) + "\n";
  for (const auto& [name, value] : manifest.description.metadata) {
    text += "  " + QuoteForLog(name) + " = " + QuoteForLog(MetadataText(value)) + "\n";
  }
  for (const auto& [name, value] : manifest.description.user) {
    text += "  user " + QuoteForLog(name) + " = " + QuoteForLog(value) + "\n";
  }
  return text;
}

std::vector<std::string> StatsCells(const TensorStats& stats) {
  if (stats.finite_count() == 0) return {"-", "-", "-", std::to_string(stats.nan_count), ""};
  return {NumberText(stats.least), NumberText(stats.most), NumberText(stats.mean),
          std::to_string(stats.nan_count), HistogramText(stats)};
}

std::string TensorsText(const Checkpoint& checkpoint, const std::vector<TensorFacts>& facts,
                        bool has_stats) {
  std::vector<std::string> headings = {"TENSOR", "DTYPE", "SHAPE", ">SIZE", ">RATIO"};
  if (has_stats) {
    headings.insert(headings.end(), {">MIN", ">MAX", ">MEAN", ">NAN", "HISTOGRAM"});
  }
  TextTable table(std::move(headings));
  for (const TensorFacts& fact : facts) {
    const PlacedTensor& placed = checkpoint.layout().tensors()[fact.tensor];
    std::vector<std::string> row = {
        QuoteForLog(placed.spec.name), std::string(DtypeName(placed.spec.dtype)),
        ShapeText(placed.spec.shape), BytesText(placed.bytes),
        RatioText(static_cast<uint64_t>(fact.stored_bytes), placed.bytes)};
    if (fact.stats.has_value()) {
      for (std::string& cell : StatsCells(*fact.stats)) row.push_back(std::move(cell));
    }
    table.Add(row);
  }
  return table.Text();
}

Status AddStats(const World& world, const Checkpoint& checkpoint,
                std::vector<TensorFacts>* facts) {
  ProgressBar bar(world);
  for (const TensorFacts& fact : *facts) {
    bar.progress()->bytes_total += 2 * checkpoint.layout().tensors()[fact.tensor].bytes;
  }
  for (TensorFacts& fact : *facts) {
    KEEL_TRY_ASSIGN(fact.stats, ComputeStats(checkpoint, fact.tensor, bar.progress()));
  }
  return Ok();
}

}  // namespace

OptionTable InspectTable() {
  OptionTable table = CommandTable(
      "inspect", "Shows a checkpoint's metadata and its tensors: dtype, shape, size, ratio.",
      "CKPT", "");
  table.Add(Option::List("tensors", "", "Only tensors whose name matches: * and ? are wildcards")
                .Placeholder("GLOB"));
  table.Add(Option::Flag("stats", false,
                         "Read the tensors, and show minimum, maximum, mean, NaNs and a "
                         "histogram"));
  table.AddExample("keel inspect runs/bert", "The newest complete checkpoint");
  table.AddExample("keel inspect runs/bert@1200 --tensors 'optimizer.*' --stats",
                   "What Adam's moments were like at step 1200");
  return table;
}

Result<Outcome> RunInspect(const World& world, const Options& options) {
  KEEL_TRY_ASSIGN(const auto checkpoint,
                  OpenCheckpoint(world.files, options.positionals()[0]));
  KEEL_TRY_ASSIGN(const auto tensors,
                  MatchTensors(checkpoint->layout(), options.List("tensors")));
  const std::vector<double> stored = StoredShares(*checkpoint);
  std::vector<TensorFacts> facts;
  for (const size_t tensor : tensors) facts.push_back({tensor, stored[tensor], {}});
  const bool has_stats = options.Flag("stats");
  if (has_stats) KEEL_TRY(AddStats(world, *checkpoint, &facts));
  return Outcome{ToJson(*checkpoint, facts),
                 HeadText(*checkpoint, world.paint) + TensorsText(*checkpoint, facts, has_stats)};
}

}  // namespace keel
