// elastic_sim: runs simulated jobs, one a seed, and names those that broke a promise.
//   elastic_sim --seeds 100000 --first-seed 1
//   elastic_sim --trace 4711        all that happens in the run of that seed
//   elastic_sim --defect 9          with that mistake planted (the number of a Defect)
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tests/sim/world.h"

namespace keel {
namespace {

struct Arguments {
  uint64_t seeds = 1000;
  uint64_t first_seed = 1;
  uint64_t trace = 0;   // 0: none
  uint64_t defect = 0;
};

bool TakeNumber(std::string_view text, uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

bool TakeArguments(int argc, char** argv, Arguments& into) {
  const std::map<std::string_view, uint64_t*> options = {
      {"--seeds", &into.seeds}, {"--first-seed", &into.first_seed}, {"--trace", &into.trace},
      {"--defect", &into.defect}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = options.find(argv[i]);
    if (option == options.end() || i + 1 >= argc) return false;
    if (!TakeNumber(argv[i + 1], *option->second)) return false;
  }
  return true;
}

void PrintReplay(uint64_t seed) {
  std::printf("replay it with: elastic_sim --trace %llu\n", static_cast<unsigned long long>(seed));
}

// A KEEL_CHECK that fails ends the process; its seed must be known all the same.
char seed_text[64];
void OnAbort(int) {
  const std::string_view text(seed_text);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

Outcome Run(uint64_t seed, uint64_t defect, World::Tracer tracer) {
  Scenario scenario = DrawScenario(seed);
  scenario.defect = static_cast<Defect>(defect);
  return World(scenario, std::move(tracer)).Run();
}

int Trace(const Arguments& arguments) {
  const Outcome outcome = Run(arguments.trace, arguments.defect, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  });
  return outcome.failure.empty() ? 0 : 1;
}

// What all runs together came to.
struct Sum {
  std::map<int, uint64_t> codes;
  int64_t epochs = 0;
  uint64_t failures = 0;
  Duration simulated{0};
};

void PrintFailure(uint64_t seed, const Outcome& outcome, bool with_trace) {
  if (with_trace) {
    for (const std::string& line : outcome.trace) std::printf("%s\n", line.c_str());
  }
  std::printf("seed %llu FAILED: %s\n", static_cast<unsigned long long>(seed),
              outcome.failure.c_str());
  if (with_trace) PrintReplay(seed);
  std::fflush(stdout);
}

void PrintSum(const Arguments& arguments, const Sum& sum) {
  std::printf("%llu seeds from %llu: %llu failed; %lld epochs in %s of simulated time; jobs ended",
              static_cast<unsigned long long>(arguments.seeds),
              static_cast<unsigned long long>(arguments.first_seed),
              static_cast<unsigned long long>(sum.failures),
              static_cast<long long>(sum.epochs), DurationText(sum.simulated).c_str());
  for (const auto& [code, count] : sum.codes) {
    const std::string how = code < 0 ? "with nobody left" : "with " + std::to_string(code);
    std::printf(" %s: %llu", how.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf("\n");
}

int RunAll(const Arguments& arguments) {
  Sum sum;
  for (uint64_t i = 0; i < arguments.seeds; ++i) {
    const uint64_t seed = arguments.first_seed + i;
    std::snprintf(seed_text, sizeof seed_text, "while simulating seed %llu\n",
                  static_cast<unsigned long long>(seed));
    const Outcome outcome = Run(seed, arguments.defect, {});
    if (!outcome.failure.empty()) PrintFailure(seed, outcome, sum.failures++ == 0);
    ++sum.codes[outcome.code];
    sum.epochs += outcome.epochs;
    sum.simulated += outcome.simulated;
  }
  PrintSum(arguments, sum);
  return sum.failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  keel::Arguments arguments;
  if (!keel::TakeArguments(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: elastic_sim [--seeds N] [--first-seed S] [--trace SEED] [--defect N]\n");
    return 2;
  }
  signal(SIGABRT, keel::OnAbort);
  return arguments.trace > 0 ? keel::Trace(arguments) : keel::RunAll(arguments);
}
