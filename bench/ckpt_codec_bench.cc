// The frame codec on one core, beside memcpy and zstd level 1 of the same bytes in the same run.
// Give ratios, not seconds: cores differ. `bytes` is stored bytes by content bytes. The data is
// Gaussian, as freshly initialised weights are; trained ones come out within 2 % of it.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "ckpt/frame.h"

namespace keel {
namespace {

constexpr uint64_t kFrames = 64;  // more than the caches hold

// 4: floats. 2: their upper halves, which are bf16.
std::vector<std::byte> Gaussian(uint32_t width) {
  Random random(1);
  std::vector<std::byte> bytes(kFrames * kFrameBytes);
  for (size_t i = 0; i < bytes.size(); i += width) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Double()));
    const auto number =
        static_cast<float>(0.02 * radius * std::cos(6.283185307179586 * random.Double()));
    std::memcpy(bytes.data() + i, reinterpret_cast<const std::byte*>(&number) + 4 - width, width);
  }
  return bytes;
}

const std::vector<std::byte>& Data(uint32_t width) {
  static const std::vector<std::byte> floats = Gaussian(4);
  static const std::vector<std::byte> halves = Gaussian(2);
  return width == 4 ? floats : halves;
}

std::span<const std::byte> FrameOf(uint32_t width, uint64_t frame) {
  return std::span(Data(width)).subspan(frame * kFrameBytes, kFrameBytes);
}

void Count(benchmark::State& state, double stored_by_content) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * kFrameBytes);
  state.counters["bytes"] = stored_by_content;
}

void Memcpy(benchmark::State& state, uint32_t width) {
  std::vector<std::byte> into(kFrameBytes);
  uint64_t frame = Data(width).size() / kFrameBytes;  // made before the clock runs
  for (auto _ : state) {
    std::memcpy(into.data(), FrameOf(width, frame++ % kFrames).data(), kFrameBytes);
    benchmark::ClobberMemory();
  }
  Count(state, 1);
}

void Compress(benchmark::State& state, uint32_t width, CodecChoice choice) {
  FrameCoder coder;
  std::vector<std::byte> into(StoredBytesMax(kFrameBytes));
  double stored = 0;
  uint64_t frame = Data(width).size() / kFrameBytes;
  for (auto _ : state) {
    const auto content = FrameOf(width, frame++ % kFrames);
    stored += static_cast<double>(coder.Encode(0, width, content, choice, into).bytes);
  }
  Count(state, stored / static_cast<double>(state.iterations()) / kFrameBytes);
}

void Decompress(benchmark::State& state, uint32_t width, CodecChoice choice) {
  FrameCoder coder;
  std::vector<std::vector<std::byte>> frames;
  for (uint64_t i = 0; i < kFrames; ++i) {
    frames.emplace_back(StoredBytesMax(kFrameBytes));
    frames[i].resize(coder.Encode(i, width, FrameOf(width, i), choice, frames[i]).bytes);
  }
  std::vector<std::byte> into(kFrameBytes);
  uint64_t frame = 0;
  for (auto _ : state) {
    const uint64_t i = frame++ % kFrames;
    if (!coder.Decode(i, width, frames[i], into).ok()) state.SkipWithError("decode failed");
  }
  Count(state, static_cast<double>(frames[0].size()) / kFrameBytes);
}

constexpr CodecChoice kPlanes{Codec::kPlanes, 1};
constexpr CodecChoice kZstd1{Codec::kZstd, 1};

BENCHMARK_CAPTURE(Memcpy, fp32, 4);
BENCHMARK_CAPTURE(Compress, fp32_zstd1, 4, kZstd1);
BENCHMARK_CAPTURE(Compress, fp32_planes_and_digest, 4, kPlanes);
BENCHMARK_CAPTURE(Compress, bf16_zstd1, 2, kZstd1);
BENCHMARK_CAPTURE(Compress, bf16_planes_and_digest, 2, kPlanes);
BENCHMARK_CAPTURE(Decompress, fp32_zstd1, 4, kZstd1);
BENCHMARK_CAPTURE(Decompress, fp32_planes_and_digest, 4, kPlanes);
BENCHMARK_CAPTURE(Decompress, bf16_zstd1, 2, kZstd1);
BENCHMARK_CAPTURE(Decompress, bf16_planes_and_digest, 2, kPlanes);

}  // namespace
}  // namespace keel

BENCHMARK_MAIN();
