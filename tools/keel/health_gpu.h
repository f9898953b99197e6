// HealthGpu: reads what nvidia-smi says of GPUs, and concludes which of them are unfit.
// Promises   pure, whatever bytes come; what nvidia-smi does not tell of a GPU is no fault.
// Does not   run it (tools/keel/health_look.h); compute on a GPU.
// Threads    pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/keel/health_findings.h"

namespace keel {

// What is asked of each GPU with --query-gpu.
std::vector<std::string> GpuFields();
// What is asked with --query-remapped-rows by those nvidia-smi that do not know it as above.
std::vector<std::string> RemappedRowsFields();

// Values by the names of their fields.
using GpuReading = std::map<std::string, std::string>;

struct GpuAnswer {
  std::vector<GpuReading> gpus;
  // Those with more or fewer values than fields, or whose index is no number.
  std::vector<std::string> odd_lines;
};
// `text`: lines of values, with commas between them.
GpuAnswer ParseGpuAnswer(const std::vector<std::string>& fields, std::string_view text);

// Adds what a second answer says of the same GPUs, by their uuid.
void AddReadings(const std::vector<GpuReading>& more, std::vector<GpuReading>* gpus);

// The field that nvidia-smi does not know, by its own words; none: they say something else.
std::optional<std::string> UnknownField(std::string_view words);

// Whether words of nvidia-smi are about a certain GPU: they have its uuid or its bus.
bool NamesGpu(std::string_view words);

// One finding for each GPU that is fit, and one for each fault.
std::vector<HealthFinding> GpuFindings(const std::vector<GpuReading>& gpus);

// nvidia-smi failed, hung, or was not understood. `device`: a GPU's file, as "/dev/nvidia0"; empty:
// there is none.
HealthFinding SilentGpus(const std::string& what, std::string_view words,
                         const std::string& device);

}  // namespace keel
