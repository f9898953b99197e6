// ckpt/manifest.h: as it comes, and with a digest that fits. What is read reads back the same.
#include "ckpt/manifest.h"

#include "base/file_helpers.h"
#include "tests/ckpt/state.h"
#include "tests/fuzz/fuzz_targets.h"

namespace keel {
namespace {

constexpr std::string_view kBeforeDigest = ",\n\"digest\":\"";

// The same manifest with an end that fits; a text without an end gets one.
std::string Sealed(std::string_view text) {
  const std::string_view body = text.substr(0, text.rfind(kBeforeDigest));
  std::string sealed(body);
  return sealed.append(kBeforeDigest).append(DigestOf(BytesOf(body)).Hex()).append("\"\n}\n");
}

void Read(std::string_view text) {
  const auto manifest = ParseManifest(text);
  if (!manifest.ok()) return;
  const Layout& layout = manifest->description.layout;
  KEEL_CHECK(manifest->tensor_digests.size() == layout.tensors().size(), text);
  uint64_t next = 0;
  for (const ManifestShard& shard : manifest->shards) {
    KEEL_CHECK(shard.frames.first == next, text);
    next = shard.frames.end();
  }
  KEEL_CHECK(next == layout.frame_count(), text);
  const std::string again = ManifestText(*manifest);
  const auto from_again = ParseManifest(again);
  KEEL_CHECK(from_again.ok(), again << ": " << from_again.error().message);
  KEEL_CHECK(from_again->description == manifest->description, again);
  KEEL_CHECK(ManifestText(*from_again) == again, again);
}

void Run(std::span<const std::byte> input) {
  Read(TextOf(input));
  Read(Sealed(TextOf(input)));
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const uint32_t parts : {1u, 3u}) {
    const TestState state = TestState::Make(1, parts == 1 ? 0 : 400);
    const SavePlan plan = PlanOf(state, "/c", 1, 1, 256);
    Manifest manifest{plan.description, plan.attempt, -1, {}, {}};
    manifest.tensor_digests.resize(state.specs.size());
    for (uint32_t part = 0; part < parts; ++part) {
      manifest.shards.push_back({ShardFileName({plan.attempt, part, parts}), 4096, {},
                                 plan.description.layout.PartOf(part, parts)});
    }
    seeds.push_back(ManifestText(manifest));
  }
  seeds.push_back("{\"format\":\"keel-checkpoint\",\n\"version\":1" + Sealed(""));
  seeds.push_back("[" + Sealed(""));
  return seeds;
}

}  // namespace

const FuzzTarget kManifestTarget = {"manifest", Run, Seeds};

}  // namespace keel
