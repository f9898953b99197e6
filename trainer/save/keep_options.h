// KeepOptions: the options that say what is saved and what a job begins with.
// Promises   options that contradict each other are refused here, before anything is built.
// Threads    any. Errors: kInvalid, naming the option.
#pragma once

#include "base/option_table.h"
#include "base/options.h"
#include "base/result.h"
#include "trainer/save/checkpointer.h"
#include "trainer/save/resume.h"

namespace keel {

struct KeepConfig {
  CheckpointConfig checkpoint;
  ResumeConfig resume;

  // Whether there is anything to do: something to save, or to begin from.
  bool wanted() const {
    return !checkpoint.root.empty() || !resume.resume_from.empty() || !resume.init_from.empty();
  }
};

// Else it would be a directory of that name below the working directory.
Status CheckIsNoForeignUrl(const std::string& option, const std::string& path);

void AddKeepOptions(OptionTable& table);
Result<KeepConfig> KeepConfigFrom(const Options& options);

}  // namespace keel
