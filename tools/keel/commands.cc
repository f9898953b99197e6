// The one table of commands.
#include "tools/keel/commands.h"

namespace keel {

namespace {

constexpr size_t kAnyNumber = ~size_t{0};

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"ls", "list the checkpoints in a directory", 1, 1, LsTable, RunLs},
      {"inspect", "show what a checkpoint holds", 1, 1, InspectTable, RunInspect},
      {"verify", "check every digest", 1, 1, VerifyTable, RunVerify},
      {"diff", "compare two checkpoints", 2, 2, DiffTable, RunDiff},
      {"cat", "print the values of a tensor", 2, 2, CatTable, RunCat},
      {"export", "write tensors to a safetensors file", 2, 2, ExportTable, RunExport},
      {"import", "make a checkpoint from a safetensors file", 2, 2, ImportTable, RunImport},
      {"cp", "copy checkpoints between directories and buckets", 2, 2, CpTable, RunCp},
      {"gc", "remove old checkpoints by a retention policy", 1, 1, GcTable, RunGc},
      {"pin", "keep a checkpoint for ever", 1, 1, PinTable, RunPin},
      {"unpin", "let retention delete a checkpoint", 1, 1, UnpinTable, RunUnpin},
      {"repair", "write what is whole of a damaged checkpoint to a new one", 1, 2, RepairTable,
       RunRepair},
      {"tokens", "make training data from text", 2, kAnyNumber, TokensTable, RunTokens},
      {"records", "make training data from images", 2, kAnyNumber, RecordsTable, RunRecords},
      {"data", "show what a file of training data holds", 1, 1, DataTable, RunData},
      {"recompute", "say who computed a lane wrongly", 2, kAnyNumber, RecomputeTable,
       RunRecompute},
      {"health", "say whether this machine is fit to train", 0, 0, HealthTable, RunHealth},
      {"log", "tell what hosts and workers have logged as one story", 1, kAnyNumber, LogTable,
       RunLog, CheckLog},
      {"plot", "draw what training programs have logged", 1, kAnyNumber, PlotTable, RunPlot},
      {"top", "show a job on the terminal while it runs", 1, 1, TopTable, RunTop, CheckTop},
      {"completion", "print a completion script for a shell", 1, 1, CompletionTable,
       RunCompletion, CheckCompletion},
      {"man", "print a man page", 0, 1, ManTable, RunMan, CheckMan},
  };
  return commands;
}

std::vector<CompletedCommand> CompletedCommands() {
  std::vector<CompletedCommand> commands;
  for (const Command& command : Commands()) {
    commands.push_back(
        {std::string(command.name), std::string(command.summary), command.table()});
  }
  return commands;
}

}  // namespace keel
