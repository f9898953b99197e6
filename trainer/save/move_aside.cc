// A name of chance, and a line in the log.
#include "trainer/save/move_aside.h"

#include "base/file_helpers.h"
#include "base/log.h"
#include "base/random.h"
#include "ckpt/put_aside.h"

namespace keel {

bool MoveAside(Files& files, const StepEntry& entry, const std::string& hint) {
  Random random(EntropySeed());
  const Result<std::string> aside = PutAside(files, random, ParentDir(entry.dir), entry);
  if (aside.ok()) {
    LogWarn("checkpoint-put-aside", {{"step", entry.step}, {"dir", *aside}, {"hint", hint}});
  } else {
    LogWarn("checkpoint-in-the-way", {{"dir", entry.dir}, {"reason", aside.error().message}});
  }
  return aside.ok();
}

}  // namespace keel
