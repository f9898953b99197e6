// The table's rows, and how they are read.
#include "trainer/save/keep_options.h"

#include <cstdlib>
#include <memory>

#include "store/bucket_files.h"

namespace keel {
namespace {

// One spelling of each place, as far as that can be known: what is not there yet may have several.
std::string PlaceOf(std::string place) {
  while (place.size() > 1 && place.ends_with('/')) place.pop_back();
  if (IsBucketPath(place)) return place;
  while (place.starts_with("./")) place.erase(0, 2);
  const std::unique_ptr<char, void (*)(void*)> whole(realpath(place.c_str(), nullptr), std::free);
  return whole == nullptr ? place : std::string(whole.get());
}

}  // namespace

Status CheckIsNoForeignUrl(const std::string& option, const std::string& path) {
  if (path.find("://") == std::string::npos || IsBucketPath(path)) return Ok();
  return Error{Code::kInvalid, "--" + option + " " + path +
                                   " is neither a directory nor in a bucket that is known here: "
                                   "checkpoints are in directories, or in s3://BUCKET/PREFIX "
                                   "or gs://BUCKET/PREFIX"};
}

void AddKeepOptions(OptionTable& table) {
  table.Section("Checkpoints");
  table.Add(Option::Text("checkpoint-dir", "",
                         "Where checkpoints are saved, and where the same command resumes from: "
                         "a directory, or s3://BUCKET/PREFIX (gs:// for Google's store); "
                         "without it nothing is saved")
                .Placeholder("DIR"));
  table.Add(Option::Text("checkpoint-mirror", "",
                         "Copy each checkpoint there as well, beside training: another directory, "
                         "or s3://BUCKET/PREFIX. A job resumes from the newest of both, and a stop "
                         "counts as saved once its checkpoint is there")
                .Placeholder("PLACE"));
  table.Add(Option::Flag("checkpoint-unguarded", false,
                         "Save also in a bucket whose store ignores conditions on writes "
                         "(If-None-Match: *), which is refused otherwise: each write looks before "
                         "and after whether another one is there, and two jobs that save in one "
                         "place at one moment may damage each other's checkpoints"));
  table.Add(Option::Integer("save-every", 0, "Steps between two saves; 0: save only when "
                                             "training stops or ends")
                .AtLeast(0).Placeholder("N"));
  table.Add(Option::Real("save-minutes", 0, "Minutes between two saves; 0: not by the clock")
                .RealRange(0, 1e6).Placeholder("MINUTES"));
  table.Add(Option::Integer("keep", 3, "How many of the newest checkpoints to keep")
                .AtLeast(1).Placeholder("N"));
  table.Add(Option::Integer("keep-every", 0, "Keep the first checkpoint at or after "
                                             "each multiple of this step, for ever; 0: none")
                .AtLeast(0).Placeholder("N"));
  table.Add(Option::Choice("codec", {"planes", "zstd", "none"}, "planes",
                           "How checkpoints are compressed"));
  table.Add(Option::Text("resume-from", "",
                         "Checkpoint to begin from if the checkpoint directory holds none: DIR, "
                         "ROOT@latest or ROOT@STEP")
                .Placeholder("PATH"));
  table.Add(Option::Flag("no-resume", false,
                         "Begin anew; fails if the checkpoint directory holds checkpoints"));
  table.Add(Option::Text("init-from", "",
                         "Begin with the weights, and nothing else, of a checkpoint or a "
                         ".safetensors file")
                .Placeholder("PATH"));
  table.Add(Option::Flag("strict", false,
                         "Fail if the newest checkpoint is damaged, instead of taking the one "
                         "before it"));
  table.Add(Option::Flag("allow-inexact", false,
                         "Resume from a checkpoint of other numerics or options; the results then "
                         "differ in their bits from those of a run without the change"));
}

Result<KeepConfig> KeepConfigFrom(const Options& options) {
  KeepConfig config;
  CheckpointConfig& saves = config.checkpoint;
  saves.root = options.Text("checkpoint-dir");
  saves.mirror = options.Text("checkpoint-mirror");
  saves.unguarded = options.Flag("checkpoint-unguarded");
  saves.every_steps = static_cast<uint64_t>(options.Integer("save-every"));
  saves.every_time = Duration(static_cast<int64_t>(options.Real("save-minutes") * 60e9));
  saves.retention.keep_last = static_cast<uint64_t>(options.Integer("keep"));
  saves.retention.keep_every = static_cast<uint64_t>(options.Integer("keep-every"));
  const std::string& codec = options.Text("codec");
  saves.codec = codec == "none" ? Codec::kNone : codec == "zstd" ? Codec::kZstd : Codec::kPlanes;
  ResumeConfig& resume = config.resume;
  resume.root = saves.root;
  resume.mirror = saves.mirror;
  resume.resume = !options.Flag("no-resume");
  resume.resume_from = options.Text("resume-from");
  resume.init_from = options.Text("init-from");
  resume.strict = options.Flag("strict");
  resume.allow_inexact = options.Flag("allow-inexact");
  KEEL_TRY(CheckIsNoForeignUrl("checkpoint-dir", saves.root));
  KEEL_TRY(CheckIsNoForeignUrl("checkpoint-mirror", saves.mirror));
  KEEL_TRY(CheckIsNoForeignUrl("resume-from", resume.resume_from));
  KEEL_TRY(CheckIsNoForeignUrl("init-from", resume.init_from));
  const auto refuse = [](const char* why) { return Error{Code::kInvalid, why}; };
  const bool timed = saves.every_steps > 0 || saves.every_time > Duration(0);
  if (timed && saves.root.empty()) {
    return refuse("--save-every and --save-minutes need a --checkpoint-dir to save in");
  }
  if (!saves.mirror.empty() && saves.root.empty()) {
    return refuse("--checkpoint-mirror needs a --checkpoint-dir, whose checkpoints it copies");
  }
  if (!saves.mirror.empty() && PlaceOf(saves.mirror) == PlaceOf(saves.root)) {
    return refuse("--checkpoint-mirror and --checkpoint-dir are the same place: a mirror is "
                  "another one");
  }
  if (!resume.resume && !resume.resume_from.empty()) {
    return refuse("--no-resume and --resume-from contradict each other");
  }
  if (!resume.init_from.empty() && !resume.resume_from.empty()) {
    return refuse("--init-from and --resume-from contradict each other: the first takes only the "
                  "weights");
  }
  return config;
}

}  // namespace keel
