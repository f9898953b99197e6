// ckpt/description.h: what is read holds together, can be written, and reads back the same.
#include "ckpt/description.h"

#include "ckpt/format.h"
#include "tests/ckpt/state.h"
#include "tests/fuzz/fuzz_targets.h"

namespace keel {
namespace {

// At the places that are looked at, frames are full of pieces that do not overlap. Where a tensor
// ends just before a frame does and another follows, what aligns that one ends the frame.
void CheckLayout(const Layout& layout) {
  const uint64_t frames = layout.frame_count();
  uint64_t looked_at = 0;
  for (uint64_t frame = 0; frame < frames && ++looked_at <= 40; ++frame) {
    if (looked_at == 20 && frames > 100) frame = frames - 20;
    const FrameSpan span = layout.Frame(frame);
    KEEL_CHECK(span.bytes > 0 && span.bytes <= layout.frame_bytes(), span.bytes);
    const auto pieces = layout.PiecesOf(frame);
    KEEL_CHECK(!pieces.empty() && pieces.size() == layout.PieceCount(frame), pieces.size());
    uint64_t at = 0;
    for (const Piece& piece : pieces) {
      KEEL_CHECK(piece.bytes > 0 && piece.frame_offset >= at, frame);
      at = uint64_t{piece.frame_offset} + piece.bytes;
      const PlacedTensor& tensor = layout.tensors()[piece.tensor];
      KEEL_CHECK(piece.tensor_offset + piece.bytes <= tensor.bytes, tensor.spec.name);
      KEEL_CHECK(LaneWidth(tensor.spec.dtype) == span.width, tensor.spec.name);
    }
    KEEL_CHECK(at <= span.bytes && span.bytes - at < kTensorAlignment, at << " of " << span.bytes);
  }
  for (const uint32_t parts : {1u, 7u, kShardsMax}) {
    KEEL_CHECK(layout.PartOf(0, parts).first == 0, parts);
    KEEL_CHECK(layout.PartOf(parts - 1, parts).end() == frames, parts);
  }
}

void Run(std::span<const std::byte> input) {
  const auto parsed = ParseDescriptionText(TextOf(input));
  if (!parsed.ok()) return;
  const Description& description = parsed->description;
  const Status writable = CheckDescription(description);
  KEEL_CHECK(writable.ok(), "read but not writable: " << writable.error().message);
  CheckLayout(description.layout);
  for (const auto& [name, value] : description.metadata) (void)MetadataText(value);
  const std::string text = DescriptionText(description, parsed->attempt);
  const auto again = ParseDescriptionText(text);
  KEEL_CHECK(again.ok(), text << ": " << again.error().message);
  KEEL_CHECK(again->description == description && again->attempt == parsed->attempt, text);
}

// A description with this as its tensors.
std::string With(const std::string& tensors, const std::string& frame_bytes = "64") {
  return R"({"format":"keel-checkpoint","version":1,"step":7,"attempt":"0123456789abcdef",)"
         R"("writer":"w","codec":"none","frame_bytes":)" +
         frame_bytes + R"(,"metadata":{"lanes":4,"x":0.5,"t":true,"s":"text"},"user":{"a":"b"},)"
         R"("tensors":[)" + tensors + "]}";
}

std::vector<std::string> Seeds() {
  const TestState state = TestState::Make(1, 400);
  const SavePlan plan = PlanOf(state, "/c", 1, 1, 256);
  const auto tensor = [](const std::string& shape, const std::string& rest) {
    return R"({"name":"w","dtype":"f32","shape":)" + shape + "," + rest + "}";
  };
  return {
      DescriptionText(plan.description, plan.attempt),
      With(""),
      With(tensor("[2]", R"("offset":0,"bytes":8)")),
      With(tensor("[4294967296,4294967296]", R"("offset":0,"bytes":0)")),
      With(tensor("[18014398509481984]", R"("offset":0,"bytes":72057594037927936)")),
      With(tensor("[9223372036854775807,0]", R"("offset":0,"bytes":0)")),
      With(tensor("[-1]", R"("offset":0,"bytes":0)")),
      With(tensor("[2]", R"("offset":18446744073709551615,"bytes":18446744073709551615)")),
      With(tensor("[2]", R"("offset":0,"bytes":8)") + "," +
           tensor("[2]", R"("offset":64,"bytes":8)")),
      With("", "0"), With("", "65"), With("", "16777216"), With("", "4294967296"),
      With(tensor("[]", R"("offset":0,"bytes":4)"), "16777216"),
      R"({"format":"keel-checkpoint","version":2})",
  };
}

}  // namespace

const FuzzTarget kDescriptionTarget = {"description", Run, Seeds};

}  // namespace keel
