// A shard, as it comes and sealed with digests that fit, read through all that a load goes through:
// footer, description, layout, frames, and, under a manifest that fits, a whole restore.
#include "base/file_helpers.h"
#include "base/memory_files.h"
#include "ckpt/restore.h"
#include "tests/ckpt/state.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/shard_parts.h"

namespace keel {
namespace {

const std::string kStepDir = "/c/step-000000001";

void Write(Files& files, const std::string& name, std::string_view content) {
  const auto file = files.Open(JoinPath(kStepDir, name), {.write = true, .create = true,
                                                          .truncate = true});
  KEEL_CHECK(file.ok() && (*file)->WriteAt(0, BytesOf(content)).ok(), name);
}

// Every frame by itself, as far as index and header agree.
void ReadFrames(const ShardReader& shard) {
  static FrameCoder coder;
  for (size_t i = 0; i < shard.index().size(); ++i) {
    std::vector<std::byte> stored(shard.index()[i].stored_bytes);
    if (!shard.ReadStored(i, 1, stored).ok() || !shard.CheckStored(i, stored).ok()) continue;
    const auto header = ParseFrameHeader(stored);
    if (!header.ok() || header->content_bytes > kFuzzContentMax) continue;
    std::vector<std::byte> content(header->content_bytes);
    if (!coder.Decode(header->number, header->width, stored, content).ok()) continue;
    KEEL_CHECK(DigestOf(content) == header->content_digest, shard.Place(i));
  }
}

// The manifest that a commit would write for this shard; none where it would refuse.
std::optional<Manifest> ManifestFor(const ShardReader& shard) {
  const auto described = ParseDescriptionText(shard.description_text());
  const ShardHeader& header = shard.header();
  if (!described.ok() || header.parts != 1) return std::nullopt;
  const Description& description = described->description;
  if (!CheckShardFits(shard, description, {described->attempt, 0, 1}).ok()) return std::nullopt;
  // As many pieces as fit: the same sum that Checkpoint makes.
  std::vector<std::vector<Digest>> pieces(description.layout.tensors().size());
  size_t next = 0;
  for (uint64_t frame = 0; frame < header.frames.count; ++frame) {
    for (const Piece& piece : description.layout.PiecesOf(frame)) {
      pieces[piece.tensor].push_back(shard.pieces().at(next++));
    }
  }
  Manifest manifest{description, described->attempt, 0, {}, {}};
  for (const auto& of_tensor : pieces) manifest.tensor_digests.push_back(TensorDigest(of_tensor));
  manifest.shards = {{ShardFileName({described->attempt, 0, 1}), shard.bytes(), shard.digest(),
                      header.frames}};
  return manifest;
}

void LoadAll(const Checkpoint& checkpoint) {
  const Layout& layout = checkpoint.layout();
  FrameReader reader(checkpoint);
  for (uint64_t frame = 0; frame < layout.frame_count(); ++frame) {
    if (layout.Frame(frame).bytes <= kFuzzContentMax) (void)reader.Read(frame, 3);
  }
  if (layout.tensor_bytes() > kFuzzContentMax) return;
  TestState state;
  for (const PlacedTensor& tensor : layout.tensors()) {
    state.specs.push_back(tensor.spec);
    state.bytes.emplace_back(tensor.bytes);
  }
  const auto restored =
      Restore(checkpoint, state.Targets(), {.into = Into::kFresh, .threads = 1});
  if (!restored.ok()) return;
  const Status same = CheckRestored(checkpoint, state.Targets());
  KEEL_CHECK(same.ok(), "restored, but not what was written: " << same.error().message);
}

void Read(std::string_view bytes) {
  MemoryFiles files;
  KEEL_CHECK(MakeDirs(files, kStepDir).ok(), kStepDir);
  Write(files, "shard", bytes);
  const auto shard = ShardReader::Open(files, JoinPath(kStepDir, "shard"));
  if (!shard.ok()) return;
  ReadFrames(**shard);
  const auto manifest = ManifestFor(**shard);
  if (!manifest.has_value()) return;
  Write(files, manifest->shards[0].file, bytes);
  Write(files, std::string(kManifestName), ManifestText(*manifest));
  const auto checkpoint = Checkpoint::Open(files, kStepDir);
  KEEL_CHECK(checkpoint.ok(), "a shard that fits its manifest: " << checkpoint.error().message);
  LoadAll(**checkpoint);
}

void Run(std::span<const std::byte> input) {
  Read(TextOf(input));
  std::string sealed(TextOf(input));
  SealShard(std::as_writable_bytes(std::span(sealed)));
  if (sealed != TextOf(input)) Read(sealed);
}

// The only shard of a checkpoint of this state.
std::string ShardOf(const TestState& state, Codec codec, uint32_t frame_bytes) {
  MemoryFiles files;
  MemorySource source(state.Spans());
  SavePlan plan = PlanOf(state, "/c", 1, 1, frame_bytes);
  plan.description.codec = codec;
  const std::string name = ShardFileName({plan.attempt, 0, 1});
  const auto saved = SaveCheckpoint(files, plan, source, {}, 0);
  KEEL_CHECK(saved.ok(), saved.error().message);
  const auto content = ReadWhole(files, JoinPath(saved->step_dir, name), 1 << 20);
  KEEL_CHECK(content.ok(), name);
  return *content;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  Random random(2);
  TestState small;  // few tensors: most of the time goes into reading their descriptions
  small.Add("w", Dtype::kF32, {150}, random);
  small.Add("n", Dtype::kI64, {}, random);
  TestState halves;
  halves.Add("w", Dtype::kBf16, {1500}, random);
  for (size_t i = 1; i < 3000; i += 2) halves.bytes[0][i] = std::byte{0x3F};
  for (const Codec codec : {Codec::kNone, Codec::kZstd, Codec::kPlanes}) {
    seeds.push_back(ShardOf(small, codec, 256));
    seeds.push_back(ShardOf(halves, codec, 4096));
  }
  seeds.push_back(ShardOf({}, Codec::kNone, 64));
  seeds.push_back(ShardOf(TestState::Make(1, 200), Codec::kPlanes, 1024));
  return seeds;
}

std::string Changed(const std::string& part, Mutate mutate) {
  constexpr size_t kMore = 64;
  std::vector<uint8_t> bytes(part.begin(), part.end());
  bytes.resize(part.size() + kMore);
  const size_t size = mutate(bytes.data(), part.size(), bytes.size());
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)};
}

// One part changed, all others in their places around it.
std::string MutateShard(std::string_view input, uint32_t seed, Mutate mutate) {
  Random random(seed);
  auto parts = TakeApart(input);
  if (!parts.has_value() || random.Chance(0.1)) return Changed(std::string(input), mutate);
  const size_t frame = parts->frames.empty() ? 0 : random.Uniform(parts->frames.size());
  const uint64_t which = random.Uniform(parts->frames.empty() ? 4 : 10);
  if (which == 0) {
    parts->header = Changed(parts->header, mutate);
  } else if (which <= 2) {
    parts->description = Changed(parts->description, mutate);
  } else if (which == 3) {
    parts->pieces = Changed(parts->pieces, mutate);
  } else if (which == 4) {
    parts->index[frame].content_bytes = static_cast<uint32_t>(random.Uniform(70'000));
  } else if (which == 5) {
    parts->frames.erase(parts->frames.begin() + static_cast<ptrdiff_t>(frame));
    parts->index.erase(parts->index.begin() + static_cast<ptrdiff_t>(frame));
  } else {
    parts->frames[frame] = Changed(parts->frames[frame], mutate);
  }
  return PutTogether(*parts);
}

}  // namespace

const FuzzTarget kShardTarget = {"shard", Run, Seeds, MutateShard};

}  // namespace keel
