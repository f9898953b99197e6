// Finding programs, and saying why one does not start.
#include "elastic/process/program_path.h"

#include <boost/filesystem.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/harness/expect_ok.h"
#include "tests/support/file_text.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using ::testing::HasSubstr;

class ProgramPath : public ::testing::Test {
 protected:
  void SetUp() override {
    boost::filesystem::create_directory(folder_.File("first"));
    boost::filesystem::create_directory(folder_.File("second"));
    search_ = folder_.File("first") + ":" + folder_.File("second");
  }

  TempDir folder_;
  std::string search_;
};

TEST_F(ProgramPath, APathIsTakenAsItIs) {
  EXPECT_EQ(*FindProgram("./anything", search_, ""), "./anything");
}

TEST_F(ProgramPath, TheFirstFileThatCanBeRunIsTaken) {
  WriteFile(folder_.File("first/tool"), "", 0644);
  boost::filesystem::create_directory(folder_.File("first/other"));
  WriteFile(folder_.File("second/tool"), "", 0755);
  WriteFile(folder_.File("second/other"), "", 0755);
  EXPECT_EQ(*FindProgram("tool", search_, ""), folder_.File("second/tool"));
  EXPECT_EQ(*FindProgram("other", search_, ""), folder_.File("second/other"));
}

TEST_F(ProgramPath, ARelativeFolderIsMeantFromTheWorkingDirectory) {
  WriteFile(folder_.File("second/tool"), "", 0755);
  EXPECT_EQ(*FindProgram("tool", "first:second", folder_.path()), "second/tool");
  EXPECT_EQ(*FindProgram("tool", "first:", folder_.File("second")), "./tool");
}

TEST_F(ProgramPath, AMissingProgramIsReportedWithThePathSearched) {
  const auto found = FindProgram("tool", search_, "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kNotFound);
  EXPECT_EQ(found.error().message,
            "program not found: 'tool' is in no folder of PATH (" + search_ + ")");
}

TEST_F(ProgramPath, AFileThatCannotBeRunIsReportedAsSuch) {
  WriteFile(folder_.File("second/tool"), "", 0644);
  const auto found = FindProgram("tool", search_, "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kInvalid);
  EXPECT_THAT(found.error().message, HasSubstr("not executable: permission denied"));
}

TEST_F(ProgramPath, AnEmptyNameIsAnError) { EXPECT_FALSE(FindProgram("", search_, "").ok()); }

TEST_F(ProgramPath, AScriptWithoutItsInterpreterIsNotCalledMissing) {
  WriteFile(folder_.File("script"), "#! /no/such/python -u\n", 0755);
  const Error error = ExplainExecFailure("script", folder_.path(), ENOENT);
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message, "'script' has a bad interpreter: its first line names "
                           "'/no/such/python', which is not there");
}

TEST_F(ProgramPath, ACheckFindsWhatExecWouldRefuse) {
  WriteFile(folder_.File("first/good"), "#!/bin/sh\n", 0755);
  WriteFile(folder_.File("first/plain"), "", 0644);
  WriteFile(folder_.File("first/orphan"), "#!/no/such/shell\n", 0755);
  WriteFile(folder_.File("first/dos"), "#!/bin/sh\r\n", 0755);
  WriteFile(folder_.File("first/data"), "#!" + folder_.File("first/plain") + "\n", 0755);
  EXPECT_OK(CheckProgram("good", search_));
  EXPECT_OK(CheckProgram(folder_.File("first/good"), ""));
  EXPECT_OK(CheckProgram("sh", SearchPath({})));
  const std::pair<std::string, const char*> cases[] = {
      {"nosuch", "in no folder of PATH"},
      {"/no/such/tool", "program not found: there is no '/no/such/tool'"},
      {folder_.File("first/plain") + "/x", "Not a directory"},
      {folder_.path(), "is a folder, not a program"},
      {folder_.File("first/plain"), "not executable: permission denied"},
      {"orphan", "'/no/such/shell', which is not there"},
      {"dos", "carriage return"},
      {"data", "which is not executable"}};
  for (const auto& [name, part] : cases) {
    const Status status = CheckProgram(name, search_);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_THAT(status.error().message, HasSubstr(part)) << name;
  }
}

TEST_F(ProgramPath, AScriptIsThereOrIsNamed) {
  WriteFile(folder_.File("a.py"), "", 0644);
  EXPECT_OK(CheckScript(folder_.File("a.py")));
  EXPECT_OK(CheckScript("-"));
  const Status status = CheckScript(folder_.File("b.py"));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("script not found: '" + folder_.File("b.py")));
}

// Every worker reads it, and each that takes a dead one's place.
TEST_F(ProgramPath, AScriptIsAFileOrAFolderThatPythonRuns) {
  const std::string pipe = folder_.File("pipe.py");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  const std::string folder = folder_.File("folder.py");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const std::pair<std::string, const char*> cases[] = {
      {pipe, "is a pipe, a device or the like, not a script"},
      {"/dev/null", "is a pipe, a device or the like, not a script"},
      {folder, "is a folder without a __main__.py"}};
  for (const auto& [path, part] : cases) {
    const Status status = CheckScript(path);
    ASSERT_FALSE(status.ok()) << path;
    EXPECT_THAT(status.error().message, HasSubstr(part));
    EXPECT_THAT(status.error().message, HasSubstr(path));
  }
  WriteFile(folder + "/__main__.py", "", 0644);
  EXPECT_OK(CheckScript(folder));
}

}  // namespace
}  // namespace keel
