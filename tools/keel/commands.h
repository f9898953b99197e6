// The commands' tables and functions, each in the file of its name.
#pragma once

#include "tools/keel/command.h"

namespace keel {

OptionTable LsTable();
Result<Outcome> RunLs(const World& world, const Options& options);
OptionTable InspectTable();
Result<Outcome> RunInspect(const World& world, const Options& options);
OptionTable VerifyTable();
Result<Outcome> RunVerify(const World& world, const Options& options);
OptionTable DiffTable();
Result<Outcome> RunDiff(const World& world, const Options& options);
OptionTable ExportTable();
Result<Outcome> RunExport(const World& world, const Options& options);
OptionTable ImportTable();
Result<Outcome> RunImport(const World& world, const Options& options);
OptionTable CpTable();
Result<Outcome> RunCp(const World& world, const Options& options);
OptionTable GcTable();
Result<Outcome> RunGc(const World& world, const Options& options);
OptionTable PinTable();
Result<Outcome> RunPin(const World& world, const Options& options);
OptionTable UnpinTable();
Result<Outcome> RunUnpin(const World& world, const Options& options);
OptionTable CatTable();
Result<Outcome> RunCat(const World& world, const Options& options);
OptionTable RepairTable();
Result<Outcome> RunRepair(const World& world, const Options& options);
OptionTable TokensTable();
Result<Outcome> RunTokens(const World& world, const Options& options);
OptionTable RecordsTable();
Result<Outcome> RunRecords(const World& world, const Options& options);
OptionTable DataTable();
Result<Outcome> RunData(const World& world, const Options& options);
OptionTable RecomputeTable();
Result<Outcome> RunRecompute(const World& world, const Options& options);
OptionTable HealthTable();
Result<Outcome> RunHealth(const World& world, const Options& options);
OptionTable LogTable();
Status CheckLog(const Options& options);
Result<Outcome> RunLog(const World& world, const Options& options);
OptionTable PlotTable();
Result<Outcome> RunPlot(const World& world, const Options& options);
OptionTable TopTable();
Status CheckTop(const Options& options);
Result<Outcome> RunTop(const World& world, const Options& options);
OptionTable CompletionTable();
Status CheckCompletion(const Options& options);
Result<Outcome> RunCompletion(const World& world, const Options& options);
OptionTable ManTable();
Status CheckMan(const Options& options);
Result<Outcome> RunMan(const World& world, const Options& options);

}  // namespace keel
