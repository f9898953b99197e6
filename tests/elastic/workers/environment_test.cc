// Reading the launcher's variables: what is right, what is missing, what is nonsense.
#include "elastic/worker_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel {
namespace {

const WorkerEnvironment kWorker{.rank = 5,
                                .world_size = 8,
                                .local_rank = 1,
                                .local_world_size = 4,
                                .master_address = "10.0.0.1",
                                .master_port = 29500};

TEST(WorkerEnvironment, ReadsBackWhatItWrote) {
  const auto read = ReadWorkerEnvironment(kWorker.Variables());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->Variables(), kWorker.Variables());
}

TEST(WorkerEnvironment, LocalRankDefaultsToRank) {
  Environment variables = kWorker.Variables();
  variables.erase("LOCAL_RANK");
  variables.erase("LOCAL_WORLD_SIZE");
  const auto read = ReadWorkerEnvironment(variables);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->local_rank, 5);
  EXPECT_EQ(read->local_world_size, 8);
}

TEST(WorkerEnvironment, IsThereWhereALauncherSetARank) {
  EXPECT_TRUE(HasWorkerEnvironment(kWorker.Variables()));
  EXPECT_FALSE(HasWorkerEnvironment({{"WORLD_SIZE", "3"}}));
}

TEST(WorkerEnvironment, NamesEachVariableThatIsMissing) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Environment variables = kWorker.Variables();
    variables.erase(name);
    const auto read = ReadWorkerEnvironment(variables);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.error().message, testing::HasSubstr(std::string(name) + " is not set"));
  }
}

TEST(WorkerEnvironment, NamesEachValueThatMakesNoSense) {
  const Environment nonsense = {{"RANK", "8"},       {"RANK ", "x"},     {"WORLD_SIZE", "0"},
                                {"LOCAL_RANK", "4"}, {"MASTER_PORT", "65536"}};
  for (const auto& [name, value] : nonsense) {
    Environment variables = kWorker.Variables();
    const std::string variable = name == "RANK " ? "RANK" : name;
    variables[variable] = value;
    const auto read = ReadWorkerEnvironment(variables);
    ASSERT_FALSE(read.ok()) << variable << "=" << value;
    EXPECT_EQ(read.error().code, Code::kInvalid);
    EXPECT_THAT(read.error().message, testing::HasSubstr(variable + "='" + value + "'"));
  }
}

}  // namespace
}  // namespace keel
