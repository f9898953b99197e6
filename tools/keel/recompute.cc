// `keel recompute`: has a training program compute the lane of an evidence file on this machine.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/environment.h"
#include "base/file_helpers.h"
#include "base/output_file.h"
#include "base/text.h"
#include "elastic/process/spawn.h"
#include "elastic/protocol/control_link.h"
#include "tools/keel/commands.h"
#include "tools/keel/recompute_verdict.h"
#include "tools/keel/text_table.h"
#include "trainer/loop/recompute_variables.h"

namespace keel {
namespace {

constexpr uint64_t kAnswerBytesMax = 64 << 20;

std::string Variable(const Environment& environment, const char* name, const char* otherwise) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? otherwise : found->second;
}

// A script is run as `keelrun` does it.
std::vector<std::string> CommandLine(std::vector<std::string> words, const Environment& own) {
  if (!words.front().ends_with(".py")) return words;
  words.insert(words.begin(), {Variable(own, "PYTHON_EXEC", "python3"), "-u"});
  return words;
}

// Runs it to its end. What it prints goes to our stderr: the answer comes in a file.
Result<ExitStatus> RunProgram(std::vector<std::string> words, const std::string& evidence,
                              const std::string& answer) {
  Environment own = OwnEnvironment();
  own.erase(kControlFdVariable);   // it has no launcher
  ChildSpec spec;
  spec.argv = CommandLine(std::move(words), own);
  spec.environment = With(std::move(own), {{kRecomputeVariable, evidence},
                                           {kRecomputedVariable, answer}});
  KEEL_TRY_ASSIGN(const Fd errors, OpenStream(Stream::Inherit(), STDERR_FILENO));
  spec.out = Stream::Borrowed(errors);
  KEEL_TRY_ASSIGN(const Child child, Spawn(spec));
  return child.Wait(kNever);
}

Result<Json> Answer(const World& world, const std::string& path, const ExitStatus& ended,
                    const std::string& program) {
  const Result<std::string> text = ReadWhole(world.files, path, kAnswerBytesMax);
  if (!text.ok()) {
    return Error{Code::kInvalid, program + " " + ended.Text() +
                                     " without an answer: what it says stands above. It must be a "
                                     "program of the trainer, with the options of the job"};
  }
  (void)world.files.Remove(path);
  return ParseJson(*text);
}

}  // namespace

OptionTable RecomputeTable() {
  OptionTable table = CommandTable(
      "recompute",
      "Has a training program compute a lane again that two workers of a job came to different "
      "results of, and says whose result is right, as far as this machine is to be trusted. FILE "
      "is what the job has saved (corruption-step-N-lane-L.safetensors, see --evidence-dir). "
      "PROGRAM and what follows are the command of the job without its launcher: the same program "
      "and options, on any machine that could take part in it. It makes no step and writes no "
      "checkpoint. What it prints goes to stderr.",
      "FILE PROGRAM [ARGUMENTS...]",
      "this machine comes to another result than everybody: it is wrong, or the program computes "
      "something else each time");
  table.TakePositionals(Positionals::kRemainder, "FILE PROGRAM [ARGUMENTS...]");
  table.AddExample("keel recompute ckpts/corruption-step-40-lane-3.safetensors "
                   "./train --steps 2000 --lanes 8",
                   "Who was right in step 40?");
  return table;
}

Result<Outcome> RunRecompute(const World& world, const Options& options) {
  std::vector<std::string> words = options.positionals();
  const std::string evidence = words.front();
  words.erase(words.begin());
  const std::string program = words.front();
  const std::string answer = Variable(OwnEnvironment(), "TMPDIR", "/tmp") + "/keel-recomputed-" +
                             NewOutputId() + ".json";
  KEEL_TRY_ASSIGN(const ExitStatus ended, RunProgram(std::move(words), evidence, answer));
  KEEL_TRY_ASSIGN(Json json, Answer(world, answer, ended, program));
  KEEL_TRY_ASSIGN(const Recomputed recomputed, RecomputedIn(json));
  const RecomputeVerdict verdict = JudgeClaims(recomputed.claims);
  json["wrong"] = verdict.wrong;
  json["right"] = verdict.right;
  json["sentence"] = verdict.sentence;
  TextTable table({"MEMBER", "ROLE", "COMPUTED", "RESULT"});
  for (const RecomputedClaim& claim : recomputed.claims) {
    table.Add({{claim.member},
               {claim.role},
               {claim.is_second ? "once more" : "in the step"},
               claim.differs.empty()
                   ? TextTable::Cell{"the same", world.paint.Good("the same")}
                   : TextTable::Cell{claim.differs, world.paint.Bad(claim.differs)}});
  }
  Outcome outcome;
  outcome.text = table.Text() + verdict.sentence + "\n";
  outcome.exit_code = verdict.is_alone ? kExitNo : 0;
  outcome.json = std::move(json);
  return outcome;
}

}  // namespace keel
