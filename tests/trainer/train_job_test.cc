// Whole training jobs: the real `keelrun` with tests/trainer/model_train.cc. The last line does not
// depend on how many workers there are or who is lost; what makes no sense is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "base/file_helpers.h"
#include "base/json.h"
#include "base/posix_files.h"
#include "base/random.h"
#include "base/text.h"
#include "elastic/protocol/exit_codes.h"
#include "tests/harness/expect_ok.h"
#include "tests/trainer/job_test.h"

namespace keel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// "step N rank R of W pid P loss L lanes A,B,C"
struct StepLine {
  int64_t step = 0;
  std::string loss;
  std::vector<std::string> lanes;
  std::string numbers;   // loss and lanes, as printed
};

std::vector<StepLine> StepLines(const Launched& job) {
  std::vector<StepLine> lines;
  for (const std::string& line : SplitList(job.Output(), '\n')) {
    const size_t loss = line.find(" loss ");
    const size_t lanes = line.find(" lanes ");
    if (line.find("step ") != 0 || loss == std::string::npos || lanes == std::string::npos) {
      continue;
    }
    lines.push_back({NumberAfter(line, "step"), line.substr(loss + 6, lanes - loss - 6),
                     SplitList(line.substr(lanes + 7), ','), line.substr(loss)});
  }
  return lines;
}

using TrainJob = JobTest;

// --- Bits ---

struct Config {
  const char* model;
  const char* precision;
  const char* optimizer;
  const char* lanes;
  std::vector<int> workers = {1, 2, 3, 6};
};

Words OptionsOf(const Config& config) {
  return {"--steps=12", "--lanes", config.lanes, "--model", config.model, "--precision",
          config.precision, "--optimizer", config.optimizer, "--clip-norm=1", "--lr=0.01"};
}

class AnyNumberOfWorkers : public TrainJob, public ::testing::WithParamInterface<Config> {};

TEST_P(AnyNumberOfWorkers, EndsWithTheSameLineAfterTheSameLosses) {
  const Words options = OptionsOf(GetParam());
  std::string expected;
  std::map<int64_t, std::string> numbers;   // of each step
  for (const int workers : GetParam().workers) {
    const auto job = Start(workers, options);
    ASSERT_EQ(job->ExitCode(), 0) << job->Output();
    const std::string line = LastLineOf(*job);
    if (workers == 1) expected = line;
    EXPECT_EQ(line, expected) << workers << " workers";
    const std::vector<StepLine> steps = StepLines(*job);
    EXPECT_EQ(steps.size(), 12u * workers);
    for (const StepLine& step : steps) {
      EXPECT_EQ(numbers.emplace(step.step, step.numbers).first->second, step.numbers)
          << "step " << step.step << " on " << workers << " workers";
    }
  }
  // Nothing of this would be seen if all were NaN, or stood still.
  std::set<std::string> seen;
  for (const auto& [step, text] : numbers) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")))) << step;
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 12u);
}

const Config kConfigs[] = {
    {"mlp", "fp32", "adamw", "8"},     {"mlp", "bf16", "sgd", "3"},
    {"mlp", "fp32", "sgd", "1"},       {"resnet", "fp32", "sgd", "3"},
    {"resnet", "bf16", "adamw", "12"}, {"gpt", "fp32", "adamw", "12"},
    {"gpt", "bf16", "sgd", "8"},       {"mlp", "fp16", "adamw", "3"}};

std::string NameOf(const ::testing::TestParamInfo<Config>& info) {
  const Config& config = info.param;
  return std::string(config.model) + "_" + config.precision + "_" + config.optimizer + "_" +
         config.lanes + "lanes";
}

INSTANTIATE_TEST_SUITE_P(All, AnyNumberOfWorkers, ::testing::ValuesIn(kConfigs), NameOf);

std::vector<Config> WithTheOtherNumbers() {
  std::vector<Config> configs(std::begin(kConfigs), std::end(kConfigs));
  for (Config& config : configs) config.workers = {1, 4, 5};
  return configs;
}

INSTANTIATE_TEST_SUITE_P(Nightly, AnyNumberOfWorkers, ::testing::ValuesIn(WithTheOtherNumbers()),
                         NameOf);

TEST_F(TrainJob, AnotherSeedOrNumberOfLanesLeavesAnotherLine) {
  const std::string line = LastLine(1, {"--steps=3"});
  EXPECT_NE(LastLine(1, {"--steps=3", "--seed=1"}), line);
  EXPECT_NE(LastLine(1, {"--steps=3", "--lanes=7"}), line);
}

// What all these comparisons are worth: with plain all-reduce they fail.
TEST_F(TrainJob, PlainAllReduceLeavesOtherBits) {
  const Words plain = {"--steps=12", "--reduce=allreduce"};
  const std::string alone = LastLine(1, plain);
  EXPECT_TRUE(LastLine(2, plain) != alone || LastLine(3, plain) != alone);
}

// --- Losing and gaining workers ---

// Kills this rank once all three have made steps together (again).
void KillInFullWorld(Launched& job, int rank) {
  const std::string says = "^step [0-9]+ rank " + std::to_string(rank) + " of 3 ";
  SignalPidIn(job.Await(says, job.Count(says) + 3), SIGKILL);
}

// One, then maybe one of the two that are left, as soon as they go on; until all are together
// again: what is told late of the full world must not be taken for the next one.
void Volley(Launched& job, int rank, bool one_more) {
  const std::string together = "state-agreed .* workers=3";
  const std::string two_left = "^step [0-9]+ rank [01] of 2 ";
  job.Await(together);
  const int met = job.Count(together), told = job.Count(two_left);
  KillInFullWorld(job, rank);
  if (one_more) SignalPidIn(job.Await(two_left, told + 1), SIGKILL);
  job.Await(together, met + 1);
}

// Steps are slow while somebody is missing, so that a newcomer comes before the job is over.
const Words kThreeWanted = {"--pause=500ms", "--full-world=3"};

TEST_F(TrainJob, KillsAndJoinsLeaveTheBitsOfAQuietRun) {
  const Words options = {"--model=resnet", "--steps=200", "--lanes=3"};
  const auto job = Start(3, Joined(kThreeWanted, options), {"--max-restarts=10"});
  for (const int rank : {0, 1, 2}) Volley(*job, rank, false);
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_GE(job->Count("state-agreed .*1 (receive the state|catch up)"), 3) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, options)) << job->Output();
}

// The samples that the committed steps were made of, in order, as the model "indices" tells them.
std::vector<int64_t> SamplesOf(const Launched& job, int64_t steps, int64_t samples) {
  std::map<int64_t, StepLine> by_step;
  for (const StepLine& line : StepLines(job)) {
    const auto [known, is_new] = by_step.emplace(line.step, line);
    EXPECT_TRUE(is_new || known->second.numbers == line.numbers) << "step " << line.step;
  }
  std::vector<int64_t> taken;
  for (int64_t step = 1; step <= steps; ++step) {
    EXPECT_EQ(by_step.count(step), 1u) << "step " << step << " was told by nobody";
    for (const std::string& lane : by_step[step].lanes) {
      const int64_t digits = std::llround(std::stod(lane));
      taken.insert(taken.end(), {digits % samples, digits / samples});
    }
  }
  return taken;
}

TEST_F(TrainJob, NoSampleIsLostOrSeenTwiceWhoeverIsKilledOrJoins) {
  constexpr int64_t kSamples = 97, kLanes = 5, kLaneBatch = 2;
  const uint64_t seed = EntropySeed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Words options = {"--model=indices", "--steps=1000000", "--samples=97",
                         "--lanes=5", "--lane-batch=2", "--pause=15ms"};
  const auto job = Start(3, options, {"--max-restarts=20"});
  for (int volley = 0; volley < 4; ++volley) {
    Volley(*job, static_cast<int>(random.Uniform(3)), volley % 2 == 1);
  }
  const int told = job->Count("^step [0-9]+ rank 0 of 3 ");
  const int64_t steps = NumberAfter(job->Await("^step [0-9]+ rank 0 of 3 ", told + 10), "step");
  job->Signal(SIGTERM);
  ASSERT_EQ(job->ExitCode(), 77) << job->Output();   // it saves nowhere
  const std::vector<int64_t> taken = SamplesOf(*job, steps, kSamples);
  ASSERT_EQ(taken.size(), static_cast<size_t>(steps * kLanes * kLaneBatch));
  ASSERT_GT(taken.size(), static_cast<size_t>(kSamples));
  for (size_t begin = 0; begin < taken.size(); begin += kSamples) {
    const size_t end = std::min(begin + kSamples, taken.size());
    const std::set<int64_t> of_epoch(taken.begin() + begin, taken.begin() + end);
    EXPECT_EQ(of_epoch.size(), end - begin) << "a sample twice in the epoch of data at " << begin;
    EXPECT_GE(*of_epoch.begin(), 0);
    EXPECT_LT(*of_epoch.rbegin(), kSamples);
  }
}

// --- Who computes which lanes ---

// Two hosts, of which one needs five times as long for a lane; what the first rank's host printed.
class UnlikeHosts : public JobTest {
 protected:
  void Train(const Words& more) {
    for (const char* const lane_time : {"--lane-time=10ms", "--lane-time=50ms"}) {
      hosts_.push_back(Launch(Joined(
          Joined({"--rdzv-backend=c10d", "--rdzv-id=job", "--nnodes=2", "--nproc-per-node=1",
                  "--rdzv-endpoint=127.0.0.1:" + std::to_string(port_), kProgram, lane_time},
                 kOptions),
          more)));
    }
    for (const auto& host : hosts_) EXPECT_EQ(host->ExitCode(), 0) << host->Output();
  }
  int Count(const std::string& pattern) const {
    return hosts_[0]->Count(pattern) + hosts_[1]->Count(pattern);
  }
  // With the bits of one worker.
  void ExpectSameEnd() {
    Launched& first = *hosts_[hosts_[0]->Count("^final step=") > 0 ? 0 : 1];
    EXPECT_EQ(LastLineOf(first), LastLine(1, kOptions));
  }

  const Words kOptions = {"--model=resnet", "--lanes=8", "--steps=30"};
  std::vector<std::unique_ptr<Launched>> hosts_;
};

TEST_F(UnlikeHosts, TheSlowOneGetsFewerLanes) {
  Train({});
  const std::string moved = "([5-7]\\+[1-3]|[1-3]\\+[5-7]) lanes instead of 4\\+4: ";
  EXPECT_GE(Count(" lanes-moved .*reason=\"" + moved), 1)
      << hosts_[0]->Output() << hosts_[1]->Output();
  ExpectSameEnd();
}

TEST_F(UnlikeHosts, AnEvenSplitIsKeptWhereItIsAskedFor) {
  Train({"--lane-placement=even"});
  EXPECT_EQ(Count(" lanes-moved "), 0);
  EXPECT_GE(Count("^step 30 rank [01] of 2 "), 1);
  ExpectSameEnd();
}

// --- Loading, evaluation, logs ---

TEST_F(TrainJob, LoadingAheadOrNotLeavesTheSameLine) {
  const Words options = {"--model=gpt", "--steps=12"};
  const std::string expected = LastLine(2, Joined(options, {"--load-threads=0"}));
  EXPECT_EQ(LastLine(2, Joined(options, {"--load-threads=1", "--load-ahead=1"})), expected);
  EXPECT_EQ(LastLine(3, Joined(options, {"--load-threads=3", "--load-ahead=20"})), expected);
}

TEST_F(TrainJob, EvaluationHasTheSameValuesAndLeavesTheSameLine) {
  const Words options = {"--model=resnet", "--steps=9"};
  const std::string expected = LastLine(1, options);
  std::set<std::string> seen;
  for (int workers = 1; workers <= 4; ++workers) {
    const auto job = Start(workers, Joined(options, {"--evaluate-every=3"}));
    ASSERT_EQ(job->ExitCode(), 0) << job->Output();
    EXPECT_EQ(LastLineOf(*job), expected) << workers << " workers";
    EXPECT_EQ(job->Count("^evaluation at "), 3) << job->Output();
    for (const std::string& line : SplitList(job->Output(), '\n')) {
      if (line.find("evaluation at ") == 0) seen.insert(line);
    }
  }
  EXPECT_EQ(seen.size(), 3u) << JoinList({seen.begin(), seen.end()}, "\n");
}

TEST_F(TrainJob, LogsSayWhatTrainingDoesAndLeaveTheSameLine) {
  const std::string jsonl = folder_.File("run.jsonl");
  const std::string expected = LastLine(2, {"--steps=20", "--log-every=0"});
  const auto job = Start(2, {"--steps=20", "--log-every=5", "--log-jsonl=" + jsonl,
                             "--tensorboard=" + folder_.File("curves")});
  ASSERT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(LastLineOf(*job), expected);
  PosixFiles files;
  ASSERT_OK_AND_ASSIGN(const std::string text, ReadWhole(files, jsonl, 1 << 20));
  const std::vector<std::string> lines = SplitList(text, '\n');
  ASSERT_EQ(lines.size(), 5u) << text;
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const Json entry, ParseJson(lines[i]));
    EXPECT_EQ(entry.at("step"), 5 * (i + 1));
    EXPECT_GT(entry.at("ms").at("forward").get<double>(), 0);
    EXPECT_GT(entry.at("ms").at("backward").get<double>(), 0);
  }
  ASSERT_OK_AND_ASSIGN(const Json summary, ParseJson(lines[4]));
  EXPECT_EQ(summary.at("event"), "summary");
  EXPECT_GT(summary.at("goodput").get<double>(), 0);
  ASSERT_OK_AND_ASSIGN(const auto curves, files.List(folder_.File("curves")));
  EXPECT_EQ(curves.size(), 1u);
}

// By the launcher, whose workers tell it where their time went; steps here are short.
TEST_F(TrainJob, TheSummaryTellsTheGoodputAndWhatAteTheRest) {
  const auto job = Start(2, {"--steps=40"}, {"--log-format=json"});
  ASSERT_EQ(job->ExitCode(), 0) << job->Output();
  ASSERT_OK_AND_ASSIGN(const Json line, ParseJson(job->Await("^\\{\"summary\"")));
  const Json& time = line.at("summary").at("time_here");
  const Json& seconds = time.at("seconds");
  EXPECT_GT(time.at("goodput").get<double>(), 0);
  EXPECT_LT(time.at("goodput").get<double>(), 1);
  EXPECT_GT(seconds.at("steps").get<double>(), 0);
  EXPECT_GT(seconds.at("starting").get<double>(), 0);
  double all = 0;
  for (const auto& [name, part] : seconds.items()) all += part.get<double>();
  EXPECT_NEAR(seconds.at("steps").get<double>() / all, time.at("goodput").get<double>(), 1e-9);
}

// --- What goes wrong ---

TEST_F(TrainJob, ALossThatIsNotANumberStopsTheJobAndNamesStepAndLane) {
  const auto job = Start(3, {"--steps=40", "--samples=1000", "--poison=7"});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_EQ(job->Count("^final"), 0);
  EXPECT_GE(job->Count("step [0-9]+: the loss of lane [0-9]+ is nan; nothing of this step was "
                       "applied"),
            1)
      << job->Output();
}

TEST_F(TrainJob, SkippingStepsThatAreNotANumberLeavesTheSameBitsForAll) {
  // A quarter of all steps has the sample in it.
  const Words options = {"--steps=20", "--samples=100", "--poison=7",
                                            "--non-finite=skip"};
  const auto alone = Start(1, options);
  ASSERT_EQ(alone->ExitCode(), 0) << alone->Output();
  EXPECT_GE(alone->Count("step-skipped .*the loss of lane [0-9] is nan"), 4) << alone->Output();
  for (const int workers : {2, 3}) EXPECT_EQ(LastLine(workers, options), LastLineOf(*alone));
}

TEST_F(TrainJob, AnExceptionOnOneRankEndsTheJobAndNamesRankStepAndLane) {
  const auto job = Start(3, {"--steps=1000000", "--lanes=6", "--throw-rank=1", "--throw-step=5"});
  EXPECT_EQ(job->ExitCode(), 1) << job->Output();
  EXPECT_THAT(job->Output(), HasSubstr("rank 1"));
  EXPECT_GE(job->Count("rank 1.*, step 5, lane 2, loss: the test's own mistake"), 1)
      << job->Output();
}

TEST_F(TrainJob, AnExceptionIsSurvivedWhereRestartsAreLeft) {
  const Words options = {"--steps=30", "--lanes=6", "--pause=10ms"};
  const auto job =
      Start(3, Joined(options, {"--throw-rank=1", "--throw-step=5"}), {"--max-restarts=1"});
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  EXPECT_EQ(LastLineOf(*job), LastLine(1, options));
}

// One worker computes a wrong gradient from the 8th step on (tests/trainer/rigged_bits.h).
class ABitThatIsWrong : public JobTest {
 protected:
  void SetUp() override { ASSERT_EQ(setenv("KEEL_RIGGED_BITS", "1 7 always gradient 5", 1), 0); }
  void TearDown() override { unsetenv("KEEL_RIGGED_BITS"); }
};

TEST_F(ABitThatIsWrong, StopsTwoWorkersThatCannotTellWhoItIsWithAllStepsSaved) {
  const std::string dir = folder_.File("ckpts");
  const Words options = {"--steps=20", "--recheck-every=1", "--checkpoint-dir", dir};
  const auto job = Start(2, options);
  EXPECT_EQ(job->ExitCode(), 78) << job->Output();
  EXPECT_EQ(job->Count("^final"), 0);
  EXPECT_GE(job->Count("step 7, lane [0-9]: rank [01] .* or rank [01] .* computes other bits than "
                       "it should .*each one comes to its own result every time.*"
                       "--on-corruption=continue"),
            1)
      << job->Output();
  // Without that machine the same command goes on.
  unsetenv("KEEL_RIGGED_BITS");
  const auto again = Start(2, options);
  EXPECT_EQ(again->ExitCode(), 0) << again->Output();
  EXPECT_EQ(again->Count("^resumed step=7 "), 1) << again->Output();
  EXPECT_EQ(LastLineOf(*again), LastLine(1, {"--steps=20"}));
}

TEST_F(ABitThatIsWrong, IsShownToAnybodyWhoComputesTheLaneAgain) {
  const std::string dir = folder_.File("ckpts");
  const Words options = {"--steps=10", "--recheck-every=1", "--checkpoint-dir", dir};
  const auto job = Start(3, options, {"--max-restarts=1"});
  const std::string saved = job->Await("evidence-saved file=");
  const size_t at = saved.find("file=") + 5;
  const std::string file = saved.substr(at, saved.find(' ', at) - at);
  EXPECT_EQ(file.rfind(dir + "/corruption-step-7-lane-", 0), 0u) << saved;
  job->ExitCode();   // the two others may have made all steps before its next life is shown wrong
  EXPECT_GE(job->Count("this host: workers that died: [12] exited with a code; [0-9]+ of [0-9]+ "
                       "comparisons? came out differently"),
            1)
      << job->Output();
  unsetenv("KEEL_RIGGED_BITS");
  Words words = {KEEL_BIN_DIR "/keel", "recompute", file, KEEL_BIN_DIR "/model_train"};
  words.insert(words.end(), options.begin(), options.end());
  Launched again(folder_, "recompute", Launched::Command{words});
  EXPECT_EQ(again.ExitCode(), 0) << again.Output();
  EXPECT_EQ(again.Count("^This machine comes to the results of .*Wrong: rank 1 "), 1)
      << again.Output();
  words.emplace_back("--seed=5");
  Launched other(folder_, "other", Launched::Command{words});
  EXPECT_EQ(other.ExitCode(), 3) << other.Output();
  EXPECT_GE(other.Count("is of another program, machine or options: 'seed=0'"), 1)
      << other.Output();
}

TEST_F(ABitThatIsWrong, IsTakenWhereTheUserWantsToContinue) {
  const Words options = {"--steps=10", "--lanes=2"};
  const auto job =
      Start(2, Joined(options, {"--recheck-every=1", "--on-corruption=continue"}));
  EXPECT_EQ(job->ExitCode(), 0) << job->Output();
  // Two lanes in each of the last three steps.
  EXPECT_EQ(job->Count("error corruption step=[789] .*--on-corruption=continue says"), 6)
      << job->Output();
  const std::string unseen = LastLine(2, Joined(options, {"--recheck-every=0"}));
  EXPECT_EQ(LastLineOf(*job), unseen);
  unsetenv("KEEL_RIGGED_BITS");
  EXPECT_NE(LastLine(2, options), unseen);
}

// It is shown to be wrong as soon as it takes part.
TEST_F(TrainJob, AMachineThatComputesWronglyIsLeftOut) {
  const Words options = {"--steps=1000000", "--pause=2ms", "--recheck-every=1"};
  const auto first = StartHost(1, options, "1:3");
  first->Await("^step 3 rank 0 of 1 ");
  const auto second = StartHost(1, options, "1:3");
  first->Await("^step [0-9]+ rank 0 of 2 ");
  ASSERT_EQ(setenv("KEEL_RIGGED_BITS", "0 0 always gradient 5", 1), 0);
  const auto bad = StartHost(1, options, "1:3");
  unsetenv("KEEL_RIGGED_BITS");
  EXPECT_EQ(bad->ExitCode(), kExitShunned) << bad->Output();
  EXPECT_GE(bad->Count("host-shunned .*rank 2 .* computes other bits than it should"), 1)
      << bad->Output();
  first->Await("epoch-formed .*2 workers on 2 hosts, after: ");
  for (const auto* host : {&first, &second}) {
    EXPECT_EQ((*host)->Count("worker-died"), 0) << (*host)->Output();
    (*host)->Kill();
  }
}

TEST_F(TrainJob, ValuesThatMakeNoSenseAreRefusedByName) {
  for (const char* option : {"--lanes=0", "--lane-batch=0", "--steps=0", "--threads=0",
                             "--schedule=sometimes", "--recheck-every=often",
                             "--recheck-every=-1", "--lr=-1"}) {
    const auto job = Start(1, {option});
    EXPECT_EQ(job->ExitCode(), 78) << option;   // the launcher's: nobody starts its program again
    const std::string name = std::string(option).substr(2, std::string(option).find('=') - 2);
    EXPECT_EQ(job->Count("^model_train: .*" + name), 1) << option << "\n" << job->Output();
  }
}

// --- Refused at the door ---

struct Stranger {
  const char* name;   // of the test
  Words options;
  std::string has, job_has;   // the values, as they are shown
};

class OtherWorker : public TrainJob, public ::testing::WithParamInterface<Stranger> {};

TEST_P(OtherWorker, IsRefusedWithBothValuesAndTheOthersGoOn) {
  const Words usual = {"--steps=1000000", "--pause=5ms"};
  const auto first = StartHost(1, usual);
  first->Await("^step 3 rank 0 of 1 ");
  const auto other = StartHost(1, Joined(usual, GetParam().options));
  EXPECT_EQ(other->ExitCode(), 78) << other->Output();
  EXPECT_THAT(other->Output(), HasSubstr(GetParam().has));
  EXPECT_THAT(other->Output(), HasSubstr(GetParam().job_has));
  // It goes on, as if nobody had knocked.
  const int64_t step = static_cast<int64_t>(StepLines(*first).size());
  first->Await("^step " + std::to_string(step + 3) + " rank 0 of 1 ");
  EXPECT_EQ(first->Count("^step .* of 2 "), 0) << first->Output();
  first->Kill();
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherWorker,
    ::testing::Values(
        Stranger{"Dataset", {"--samples=101"}, "samples=101", "samples=100"},
        Stranger{"Numerics", {"--numerics=native"}, "numerics=native", "numerics=portable"},
        Stranger{"Threads", {"--threads=2"}, "threads=2", "threads=1"},
        Stranger{"Lanes", {"--lanes=9"}, "lanes=9", "lanes=8"},
        Stranger{"Steps", {"--steps=7"}, "steps=7", "steps=1000000"},
        Stranger{"Clipping", {"--clip-norm=2"}, "clip_norm=2", "clip_norm=0"},
        Stranger{"Rate", {"--lr=0.0010001"}, "rate=0.0010001", "rate=0.001000"},
        Stranger{"Model", {"--model=gpt"}, "--model=gpt layout=", "--model=mlp layout="},
        // Nothing but the program knows that this makes another model.
        Stranger{"OwnOption", {"--heads=4"}, "--heads=4", "--heads=2"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace keel
