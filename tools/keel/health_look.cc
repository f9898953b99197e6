// Reads files of the kernel's, and runs nvidia-smi and Python.
#include "tools/keel/health_look.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/file_error.h"
#include "base/file_helpers.h"
#include "base/text.h"
#include "elastic/process/program_path.h"
#include "tools/keel/health_gpu.h"
#include "tools/keel/health_gpu_product.h"
#include "tools/keel/health_xid.h"
#include "tools/keel/kernel_log.h"
#include "tools/keel/limited_run.h"

namespace keel {
namespace {

constexpr uint64_t kCounterBytesMost = 4096;
constexpr uint64_t kInterruptsBytesMost = uint64_t{64} << 20;  // it has a column for each processor
constexpr size_t kAnswerBytesMost = size_t{1} << 20;
constexpr size_t kOddLinesTold = 3;

std::optional<uint64_t> ReadCounter(Files& files, const std::string& path) {
  const Result<std::string> text = ReadWhole(files, path, kCounterBytesMost);
  if (!text.ok()) return std::nullopt;
  const Result<int64_t> count = ParseInteger(Trim(*text));
  if (!count.ok() || *count < 0) return std::nullopt;
  return static_cast<uint64_t>(*count);
}

// "nvidia0", and not "nvidiactl".
bool IsOfGpu(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  name.remove_prefix(kPrefix.size());
  return std::all_of(name.begin(), name.end(), [](unsigned char one) {
    return std::isdigit(one) != 0;
  });
}

// "/dev/nvidia0"; empty: there is none.
std::string FirstGpuDevice(Files& files, const std::string& root) {
  const auto entries = files.List(root + "/dev");
  if (!entries.ok()) return "";
  for (const DirEntry& entry : *entries) {
    if (IsOfGpu(entry.name)) return "/dev/" + entry.name;
  }
  return "";
}

// What a program did instead of ending well; empty: it did that.
std::string TroubleOf(const LimitedRun& run, Duration limit) {
  if (run.said_too_much) return "said more than " + BytesText(kAnswerBytesMost);
  if (!run.status.has_value()) return "did not end within " + DurationText(limit);
  return run.status->ok() ? "" : run.status->Text();
}

// nvidia-smi, until the deadline.
class GpuAsker {
 public:
  GpuAsker(std::string program, Duration limit)
      : program_(std::move(program)),
        limit_(limit),
        deadline_(RealClock().Monotonic() + limit) {}

  // What it says of each GPU. Fields that it does not know are left out.
  std::vector<GpuReading> Ask(const std::string& query, std::vector<std::string> fields) {
    while (!fields.empty() && RunOnce(query, fields)) {
      const std::optional<std::string> unknown = UnknownField(words_);
      const auto found = unknown.has_value() ? std::find(fields.begin(), fields.end(), *unknown)
                                             : fields.end();
      if (found == fields.end()) break;
      left_out_.push_back(*found);
      fields.erase(found);
    }
    const GpuAnswer answer = ParseGpuAnswer(fields, out_);
    if (answer.gpus.empty() && trouble_.empty()) trouble_ = "said nothing of any GPU";
    odd_lines_.insert(odd_lines_.end(), answer.odd_lines.begin(), answer.odd_lines.end());
    return answer.gpus;
  }

  // Why the last answer is not to be trusted, as what the program did; empty: it is.
  const std::string& trouble() const { return trouble_; }
  const std::string& words() const { return words_; }
  const std::vector<std::string>& odd_lines() const { return odd_lines_; }
  bool LeftOut(std::string_view beginning) const {
    return std::any_of(left_out_.begin(), left_out_.end(), [&](const std::string& field) {
      return field.starts_with(beginning);
    });
  }

 private:
  // False: there is no answer at all.
  bool RunOnce(const std::string& query, const std::vector<std::string>& fields) {
    words_.clear();
    out_.clear();
    const Result<LimitedRun> run =
        RunWithin({program_, "--" + query + "=" + JoinList(fields),
                   "--format=csv,noheader,nounits"},
                  deadline_, kAnswerBytesMost);
    if (!run.ok()) {
      trouble_ = "could not be run: " + run.error().message;
      return false;
    }
    out_ = run->out;
    words_ = run->err + (run->err.empty() ? "" : "\n") + run->out;
    trouble_ = TroubleOf(*run, limit_);
    return run->status.has_value();
  }

  const std::string program_;
  const Duration limit_;
  const TimePoint deadline_;
  std::string out_;
  std::string words_;
  std::string trouble_;
  std::vector<std::string> left_out_;
  std::vector<std::string> odd_lines_;
};

// What is there of nvidia-smi's words beside its answer.
HealthFinding OddLine(const std::string& program, const std::string& line) {
  return {"gpu", Fitness::kUnknown,
          program + " also says \"" + ShortPrintable(line) + "\""};
}

std::vector<HealthFinding> WithoutNvidiaSmi(const ProgramQuestion& question,
                                            const std::string& device) {
  if (device.empty()) return {{"gpu", Fitness::kUnknown, "there is no GPU of NVIDIA's to ask"}};
  return {{"gpu", Fitness::kUnknown,
           "there is " + device + ", and no " + question.program +
               " on the PATH to ask; --nvidia-smi names one"}};
}

}  // namespace

std::vector<HealthFinding> LookAtMemory(Files& files, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/edac/mc";
  std::vector<MemoryCounts> controllers;
  const auto entries = files.List(folder);
  if (entries.ok()) {
    for (const DirEntry& entry : *entries) {
      const bool is_controller = entry.name.size() > 2 && entry.name.starts_with("mc") &&
                                 std::isdigit(static_cast<unsigned char>(entry.name[2])) != 0;
      if (!is_controller) continue;
      const std::string path = JoinPath(folder, entry.name);
      controllers.push_back({entry.name, ReadCounter(files, JoinPath(path, "ue_count")),
                             ReadCounter(files, JoinPath(path, "ce_count"))});
    }
  }
  return MemoryFindings(controllers);
}

HealthFinding LookAtMachineChecks(Files& files, const std::string& root) {
  const auto text = ReadWhole(files, root + "/proc/interrupts", kInterruptsBytesMost);
  return MachineCheckFinding(text.ok() ? *text : "");
}

Result<std::vector<HealthFinding>> LookAtXids(const std::string& path, Duration limit,
                                              const std::string& root) {
  const bool is_own = path.empty();
  XidReader reader;
  const KernelLogRead read =
      ReadKernelLog(is_own ? root + "/dev/kmsg" : path, RealClock().Monotonic() + limit,
                    [&](std::string_view line) { reader.Add(line); });
  if (read.error != 0 && !is_own) return FileError("read", path, read.error);
  if (read.error != 0) return std::vector<HealthFinding>{SilentKernelLog(read.error)};
  const std::string log = is_own ? "the kernel's log" : Printable(path);
  std::vector<HealthFinding> findings = XidFindings(reader, log);
  if (!read.is_whole) {
    findings.push_back({"xid", Fitness::kUnknown,
                        log + " could not be read to its end within " + DurationText(limit)});
  }
  return findings;
}

Result<GpuLook> AskGpus(const ProgramQuestion& question, Files& files, const std::string& root) {
  const std::string device = FirstGpuDevice(files, root);
  const std::string search_path = SearchPath(OwnEnvironment());
  if (question.is_named_by_user) KEEL_TRY(CheckProgram(question.program, search_path));
  const auto path = FindProgram(question.program, search_path, "");
  GpuLook look;
  look.has_gpu = !device.empty();
  if (!path.ok()) {
    look.findings = WithoutNvidiaSmi(question, device);
    return look;
  }
  GpuAsker asker(*path, question.limit);
  std::vector<GpuReading> gpus = asker.Ask("query-gpu", GpuFields());
  if (asker.trouble().empty() && asker.LeftOut("remapped_rows.")) {
    AddReadings(asker.Ask("query-remapped-rows", RemappedRowsFields()), &gpus);
  }
  look.is_silent = !asker.trouble().empty();
  look.has_gpu =
      look.has_gpu || !gpus.empty() || (look.is_silent && NamesGpu(asker.words()));
  look.findings = GpuFindings(gpus);
  if (look.is_silent) {
    look.findings.push_back(
        SilentGpus(question.program + " " + asker.trouble(), asker.words(), device));
  }
  // Where it said nothing else, its words stand in the finding above.
  const size_t told = gpus.empty() ? 0 : std::min(asker.odd_lines().size(), kOddLinesTold);
  for (size_t i = 0; i < told; ++i) {
    look.findings.push_back(OddLine(question.program, asker.odd_lines()[i]));
  }
  return look;
}

Result<std::vector<HealthFinding>> ComputeOnGpus(const ProgramQuestion& question,
                                                 const std::string& module, double seconds) {
  const auto path = FindProgram(question.program, SearchPath(OwnEnvironment()), "");
  if (!path.ok()) {
    return std::vector<HealthFinding>{
        NoGpuProduct("there is no " + question.program + " on the PATH to compute on GPUs",
                     "name the Python of the job (--python)")};
  }
  const Duration limit = question.limit + Duration(static_cast<int64_t>(seconds * 1e9));
  const Result<LimitedRun> run =
      RunWithin({*path, "-B", "-u", module, "--seconds=" + NumberText(seconds)},
                RealClock().Monotonic() + limit, kAnswerBytesMost);
  if (!run.ok()) {
    return std::vector<HealthFinding>{
        NoGpuProduct(question.program + " could not be run: " + run.error().message)};
  }
  return GpuProductFindings({question.program, TroubleOf(*run, limit), run->out, run->err});
}

}  // namespace keel
