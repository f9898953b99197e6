// main() of tests that start processes: GoogleTest under a guard (tests/harness/guarded.h).
#include <gmock/gmock.h>

#include <algorithm>
#include <string_view>

#include "tests/harness/guarded.h"

namespace {

// A death test in "threadsafe" style starts this program again; its parent is guarded already, and
// looks at how that very process dies.
bool IsDeathTestChild(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* argument) {
    return std::string_view(argument).starts_with("--gtest_internal_run_death_test");
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto run_tests = [&] {
    ::testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
  };
  return IsDeathTestChild(argc, argv) ? run_tests() : keel::RunGuarded(run_tests);
}
