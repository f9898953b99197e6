// One save or one load of a real state by our engine, in a process of its own, for measure.py.
// Loads --state (a checkpoint) into memory, prints READY, and goes on when it is told to on stdin:
//   save: a line -> its shard is durable, prints RESULT {json}; a line -> part 0 commits, DONE
//   load: a line -> restores --root, verified, prints RESULT {json}; where that fails too, with the
//         error and how many tensors of the zeroed memory it had changed by then
// With --background the "training" goes on beside the save, step by step, as in the peers' bench.
// Figures: seconds of the monotonic clock, CPU seconds of the process less those of the steps,
// memory above what the process held before.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/option_help.h"
#include "base/options.h"
#include "base/posix_files.h"
#include "ckpt/background.h"
#include "ckpt/catalog.h"
#include "ckpt/restore.h"
#include "ckpt/snapshot.h"
#include "store/bucket_files.h"

namespace keel {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A line "VmHWM:  123 kB" of /proc/self/status, in MB.
double MemoryMb(Files& files, std::string_view line) {
  const auto text = ReadWhole(files, "/proc/self/status", 1 << 16);
  const size_t at = text.ok() ? text->find(line) : std::string::npos;
  KEEL_CHECK(at != std::string::npos, "no " << line << " in /proc/self/status");
  return std::stod(text->substr(at + line.size())) / 1024;
}

// From here on the peak counts from what is held now, which it returns.
double ResetPeakMb(Files& files) {
  const auto file = files.Open("/proc/self/clear_refs", {.write = true});
  KEEL_CHECK(file.ok() && (*file)->WriteAt(0, BytesOf("5")).ok(), "cannot reset the memory peak");
  return MemoryMb(files, "VmRSS:");
}

// A state in memory, as a model's and an optimizer's tensors lie there.
struct State {
  Description description;
  std::vector<std::vector<std::byte>> tensors;

  std::vector<RestoreTarget> Targets() {
    std::vector<RestoreTarget> targets;
    for (size_t i = 0; i < tensors.size(); ++i) {
      targets.push_back({description.layout.tensors()[i].spec, tensors[i]});
    }
    return targets;
  }
  std::vector<std::span<const std::byte>> Spans() const {
    return {tensors.begin(), tensors.end()};
  }
};

Result<State> Allocate(const Checkpoint& checkpoint) {
  State state;
  state.description = checkpoint.manifest().description;
  for (const PlacedTensor& tensor : checkpoint.layout().tensors()) {
    state.tensors.emplace_back(tensor.bytes);
  }
  return state;
}

Result<std::unique_ptr<Checkpoint>> OpenNamed(Files& files, const std::string& name) {
  KEEL_TRY_ASSIGN(const std::string dir, ResolveCheckpoint(files, name));
  return Checkpoint::Open(files, dir);
}

Result<State> LoadState(Files& files, const std::string& name) {
  KEEL_TRY_ASSIGN(const auto checkpoint, OpenNamed(files, name));
  KEEL_TRY_ASSIGN(State state, Allocate(*checkpoint));
  KEEL_TRY(Restore(*checkpoint, state.Targets(), {.into = Into::kFresh}));
  return state;
}

void Say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

Status AwaitLine() {
  std::string line;
  if (std::getline(std::cin, line)) return Ok();
  return Error{Code::kCancelled, "stdin ended"};
}

// A training step: the products of a small network's forward and backward pass, some milliseconds.
class Step {
 public:
  Duration Run() {
    const TimePoint start = RealClock().Monotonic();
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t k = 0; k < kIn; ++k) {
        const float factor = in_[row * kIn + k];
        for (size_t column = 0; column < kOut; ++column) {
          out_[row * kOut + column] += factor * weights_[k * kOut + column];
        }
      }
    }
    return RealClock().Monotonic() - start;
  }

 private:
  static constexpr size_t kRows = 64, kIn = 256, kOut = 1024;
  std::vector<float> in_ = std::vector<float>(kRows * kIn, 1e-6f);
  std::vector<float> weights_ = std::vector<float>(kIn * kOut, 1e-6f);
  std::vector<float> out_ = std::vector<float>(kRows * kOut, 0.0f);
};

struct Setting {
  SavePlan plan;
  WriteOptions write;
  bool background = false;
};

Result<Setting> SettingOf(const Options& options, const State& state) {
  Setting setting;
  setting.plan = {.root = options.Text("root"),
                  .attempt = options.Text("attempt"),
                  .part = static_cast<uint32_t>(options.Integer("part")),
                  .parts = static_cast<uint32_t>(options.Integer("parts")),
                  .description = state.description};
  KEEL_TRY_ASSIGN(setting.plan.description.codec, ParseCodec(options.Text("codec")));
  const int threads = static_cast<int>(options.Integer("threads"));
  setting.write = {.compress_threads = threads, .direct = options.Flag("direct")};
  setting.background = options.Flag("background");
  return setting;
}

// Blocks the caller until the shard is durable.
Result<Json> SaveBlocking(Save& save, const State& state, const WriteOptions& write) {
  MemorySource source(state.Spans());
  const TimePoint start = RealClock().Monotonic();
  KEEL_TRY_ASSIGN(const ShardSummary shard, save.WriteShard(source, write));
  const double took = Seconds(RealClock().Monotonic() - start);
  return Json{{"call_s", took}, {"shard_s", took}, {"bytes", shard.bytes}, {"steps", 0},
              {"slow_s", 0.0}, {"step_cpu_s", 0.0}};
}

// Copies the share aside, then goes on training beside the save.
Result<std::pair<Json, std::unique_ptr<Save>>> SaveBeside(Files& files, const State& state,
                                                          const Setting& setting) {
  Step step;
  std::vector<Duration> alone(40);
  const double cpu_before = CpuSeconds();
  for (Duration& one : alone) one = step.Run();
  const double step_cpu = (CpuSeconds() - cpu_before) / static_cast<double>(alone.size());
  std::nth_element(alone.begin(), alone.begin() + 20, alone.end());
  const TimePoint start = RealClock().Monotonic();
  const auto snapshot = std::make_shared<CopiedSnapshot>();
  snapshot->Copy(state.description.layout, setting.plan.part, setting.plan.parts, state.Spans());
  BackgroundSave background(files, RealClock());
  KEEL_TRY(background.Start({.plan = setting.plan, .source = snapshot, .options = setting.write}));
  const Duration call = RealClock().Monotonic() - start;
  Duration stepping{};
  int64_t steps = 0;
  for (; !background.done(); ++steps) stepping += step.Run();
  KEEL_TRY_ASSIGN(BackgroundSave::Outcome outcome, background.Take());
  KEEL_TRY(outcome.status);
  Json json = {{"call_s", Seconds(call)},
               {"shard_s", Seconds(RealClock().Monotonic() - start)},
               {"bytes", outcome.shard.bytes},
               {"steps", steps},
               {"slow_s", Seconds(stepping) - static_cast<double>(steps) * Seconds(alone[20])},
               {"step_cpu_s", static_cast<double>(steps) * step_cpu},
               {"step_ms", 1e3 * Seconds(alone[20])}};
  return std::pair(std::move(json), std::move(outcome.save));
}

Status MeasureSave(Files& files, const Options& options) {
  KEEL_TRY_ASSIGN(const State state, LoadState(files, options.Text("state")));
  KEEL_TRY_ASSIGN(const Setting setting, SettingOf(options, state));
  Say("READY");
  KEEL_TRY(AwaitLine());
  const double before_mb = ResetPeakMb(files);
  const double cpu = CpuSeconds();
  Json json;
  std::unique_ptr<Save> save;
  if (setting.background) {
    KEEL_TRY_ASSIGN(auto made, SaveBeside(files, state, setting));
    json = std::move(made.first);
    save = std::move(made.second);
  } else {
    KEEL_TRY_ASSIGN(save, Save::Begin(files, setting.plan));
    KEEL_TRY_ASSIGN(json, SaveBlocking(*save, state, setting.write));
  }
  json["cpu_s"] = CpuSeconds() - cpu - json["step_cpu_s"].get<double>();
  json["peak_mb"] = MemoryMb(files, "VmHWM:") - before_mb;
  Say("RESULT " + DumpJson(json));
  KEEL_TRY(AwaitLine());
  if (setting.plan.part == 0) KEEL_TRY(save->Commit(RealClock().WallNanos()));
  Say("DONE");
  return Ok();
}

Status RestoreInto(Files& files, const Options& options, State& state) {
  KEEL_TRY_ASSIGN(const auto checkpoint, OpenNamed(files, options.Text("root")));
  KEEL_TRY(Restore(*checkpoint, state.Targets(),
                   {.into = options.Flag("live") ? Into::kLive : Into::kFresh,
                    .threads = static_cast<int>(options.Integer("threads"))}));
  return Ok();
}

Status MeasureLoad(Files& files, const Options& options) {
  KEEL_TRY_ASSIGN(State state, LoadState(files, options.Text("state")));
  const State expected = state;
  for (auto& tensor : state.tensors) std::fill(tensor.begin(), tensor.end(), std::byte{0});
  Say("READY");
  KEEL_TRY(AwaitLine());
  const double before_mb = ResetPeakMb(files);
  const double cpu = CpuSeconds();
  const TimePoint start = RealClock().Monotonic();
  if (const Status loaded = RestoreInto(files, options, state); !loaded.ok()) {
    const auto is_touched = [](const std::vector<std::byte>& tensor) {
      return std::any_of(tensor.begin(), tensor.end(),
                         [](std::byte byte) { return byte != std::byte{0}; });
    };
    const Json json = {
        {"error", loaded.error().message},
        {"touched", std::count_if(state.tensors.begin(), state.tensors.end(), is_touched)},
        {"tensors", state.tensors.size()}};
    Say("RESULT " + DumpJson(json));
    return Ok();
  }
  const double took = Seconds(RealClock().Monotonic() - start);
  const Json json = {{"load_s", took},
                     {"load_cpu_s", CpuSeconds() - cpu},
                     {"load_peak_mb", MemoryMb(files, "VmHWM:") - before_mb},
                     {"ok", state.tensors == expected.tensors}};
  Say("RESULT " + DumpJson(json));
  return Ok();
}

OptionTable Table() {
  OptionTable table("ckpt_cycle", "One save or load of a state, measured (bench/ckpt/README.md).");
  table.TakePositionals(Positionals::kAnywhere, "save|load");
  table.Add(Option::Text("state", "", "The checkpoint that holds the state").Required());
  table.Add(Option::Text("root", "", "Where to save, or what to load").Required());
  table.Add(Option::Text("attempt", "00000000000000aa", "The same for all parts"));
  table.Add(Option::Integer("part", 0, "Which writer this is").AtLeast(0));
  table.Add(Option::Integer("parts", 1, "How many writers there are").AtLeast(1));
  table.Add(Option::Integer("threads", 1, "Threads that code").Range(1, 64));
  table.Add(Option::Choice("codec", {"planes", "zstd", "none"}, "planes", "How to store"));
  table.Add(Option::Flag("direct", true, "Write past the page cache"));
  table.Add(Option::Flag("background", false, "Train on while saving"));
  table.Add(Option::Flag("live", false, "Load into memory that must survive a failed load"));
  return table;
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
  keel::PosixFiles disk;
  keel::BucketFiles files(disk);
  keel::Status status;
  if (!options.ok()) {
    status = options.error();
  } else if (options->positionals() == std::vector<std::string>{"save"}) {
    status = keel::MeasureSave(files, *options);
  } else if (options->positionals() == std::vector<std::string>{"load"}) {
    status = keel::MeasureLoad(files, *options);
  } else {
    status = keel::Error{keel::Code::kInvalid, "say save or load"};
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "ckpt_cycle: %s\n", status.error().message.c_str());
  return 1;
}
