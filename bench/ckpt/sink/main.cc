// `s3_sink`: a store that speaks S3, in memory, for measuring clients.
#include <malloc.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "base/option_help.h"
#include "base/options.h"
#include "bench/ckpt/sink/server.h"

namespace keel {
namespace {

// Memory that is touched for the first time costs more than all else that a store in memory does,
// so it has it from the beginning, and keeps what is free.
void KeepWarm(int64_t megabytes) {
  constexpr size_t kBlock = size_t{1} << 20;
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int64_t i = 0; i < megabytes; ++i) blocks.push_back(std::make_unique<char[]>(kBlock));
}

OptionTable Table() {
  OptionTable table("s3_sink",
                    "A store in memory that speaks S3, as fast as this machine lets it "
                    "(bench/ckpt/README.md). It is for measuring: whoever comes may read and "
                    "write.");
  table.Add(Option::Integer("port", 0, "Where it listens on 127.0.0.1; 0: any").Range(0, 65535));
  table.Add(Option::Integer("rate", 0, "The link's MB a second, each way; 0: no limit").AtLeast(0));
  table.Add(
      Option::Integer("warm", 1200, "MB of memory that it holds from the beginning").AtLeast(0));
  return table;
}

Status Serve(const Options& options) {
  KeepWarm(options.Integer("warm"));
  const double rate = 1e6 * static_cast<double>(options.Integer("rate"));
  SinkServer server(rate, rate);
  const auto wanted = static_cast<uint16_t>(options.Integer("port"));
  KEEL_TRY_ASSIGN(const uint16_t port, server.Listen(wanted));
  std::printf("listening at http://127.0.0.1:%d\n", port);
  std::fflush(stdout);
  server.Run();
  return Ok();
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  const keel::OptionTable table = keel::Table();
  const auto options = keel::ParseOptions(table, keel::RealInputs(argc, argv));
  if (options.ok() && options->Flag("help")) {
    std::fputs(keel::HelpText(table, keel::TerminalWidth()).c_str(), stdout);
    return 0;
  }
  const keel::Status status = options.ok() ? keel::Serve(*options) : options.error();
  if (status.ok()) return 0;
  std::fprintf(stderr, "s3_sink: %s\n", status.error().message.c_str());
  return 1;
}
