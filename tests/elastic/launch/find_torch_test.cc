// Which PyTorch serves keelrun, and when scripts are shown its package.
#include "elastic/launch/find_torch.h"

#include <gmock/gmock.h>

#include <boost/filesystem.hpp>

#include "base/file_helpers.h"
#include "base/posix_files.h"
#include "tests/support/temp_dir.h"

namespace keel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Verdict = TorchChoice::Verdict;

TorchPlace Place(const std::string& version, bool is_named = false) {
  return {"for " + version, "/at/" + version, is_named, true, version};
}

TEST(ChooseTorch, TheFirstThatIsThereIsTaken) {
  const TorchChoice choice =
      ChooseTorch({{"venv", "/venv/torch"}, Place("2.12"), Place("2.11")}, {"2.11", "2.12"});
  EXPECT_EQ(choice.verdict, Verdict::kFound);
  EXPECT_EQ(choice.folder, "/at/2.12");
  EXPECT_EQ(choice.detail, "PyTorch 2.12 in /at/2.12 (for 2.12)");
}

TEST(ChooseTorch, WhatTheUserNamedIsNotReplaced) {
  const TorchChoice choice =
      ChooseTorch({{"KEEL_TORCH", "/gone", true}, Place("2.11")}, {"2.11"});
  EXPECT_EQ(choice.verdict, Verdict::kNotThere);
  EXPECT_THAT(choice.detail, HasSubstr("no PyTorch in /gone (KEEL_TORCH): it has no lib/libtorch"));
}

TEST(ChooseTorch, AnotherVersionIsTold) {
  const TorchChoice choice = ChooseTorch({Place("2.9"), Place("2.11")}, {"2.11", "2.12"});
  EXPECT_EQ(choice.verdict, Verdict::kNoEngine);
  EXPECT_THAT(choice.detail, HasSubstr("PyTorch 2.9 in /at/2.9 (for 2.9) is none of those that "
                                       "this keelrun was made for (2.11, 2.12)"));
  EXPECT_THAT(ChooseTorch({Place("")}, {"2.11"}).detail, HasSubstr("PyTorch of unknown version"));
}

TEST(ChooseTorch, WhereItWasLookedForIsTold) {
  const TorchChoice choice = ChooseTorch({{"PYTHONPATH", "/a/torch"}, {"venv", "/b/torch"}},
                                         {"2.11"});
  EXPECT_EQ(choice.verdict, Verdict::kNowhere);
  EXPECT_THAT(choice.detail, HasSubstr("looked for in /a/torch (PYTHONPATH), /b/torch (venv);"));
  EXPECT_THAT(choice.detail, HasSubstr("pip install torch"));
  EXPECT_THAT(ChooseTorch({}, {"2.11"}).detail, HasSubstr("there is no Python in PATH"));
}

// An installation of the archive below opt/, and Pythons beside it.
class FindTorch : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const boost::filesystem::path path = temp_.File(name);
    boost::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(WriteDurably(files_, path.string(), text).ok());
    boost::filesystem::permissions(path, boost::filesystem::owner_all);
  }
  void WriteTorch(const std::string& folder, const std::string& version) {
    Write(folder + "/lib/libtorch_cpu.so", "");
    Write(folder + "/version.py", "from typing import Optional\n__version__ = '" + version + "'\n");
  }
  std::string Package() { return temp_.File("opt/lib/evenkeel/python/evenkeel"); }
  // What is found there, as "folder version" below the test's own.
  std::string Found(const std::string& package, const Environment& environment,
                    const std::string& python) {
    const TorchChoice choice = ChooseTorch(
        PlacesOfTorch(files_, package, environment, python), {"2.11", "2.12", "2.13"});
    if (choice.verdict != Verdict::kFound) return choice.detail;
    return choice.folder.substr(temp_.path().size() + 1) + " " + choice.version;
  }

  TempDir temp_;
  PosixFiles files_;
};

TEST_F(FindTorch, IsThatOfTheWorkersPython) {
  Write("venv/bin/python3", "");
  Write("venv/pyvenv.cfg", "home = /nowhere/bin\ninclude-system-site-packages = false\n");
  WriteTorch("venv/lib/python3.12/site-packages/torch", "2.12.1+cpu");
  EXPECT_EQ(Found(Package(), {}, temp_.File("venv/bin/python3")),
            "venv/lib/python3.12/site-packages/torch 2.12");
  // By its name in PATH.
  EXPECT_EQ(Found(Package(), {{"PATH", temp_.File("venv/bin")}}, "python3"),
            "venv/lib/python3.12/site-packages/torch 2.12");
}

TEST_F(FindTorch, OfAPythonWithoutEnvironmentItsOwnVersionCounts) {
  Write("usr/bin/python3.11", "");
  boost::filesystem::create_symlink("python3.11", temp_.File("usr/bin/python3"));
  WriteTorch("usr/lib/python3.10/site-packages/torch", "2.11.0");
  WriteTorch("usr/lib/python3.11/site-packages/torch", "2.12.0");
  const std::string python = temp_.File("usr/bin/python3");
  EXPECT_EQ(Found(Package(), {}, python), "usr/lib/python3.11/site-packages/torch 2.12");
  // pip install --user
  WriteTorch("home/.local/lib/python3.11/site-packages/torch", "2.13.0");
  EXPECT_EQ(Found(Package(), {{"HOME", temp_.File("home")}}, python),
            "home/.local/lib/python3.11/site-packages/torch 2.13");
}

TEST_F(FindTorch, AnEnvironmentMaySeeThePackagesOfItsBase) {
  Write("usr/bin/python3.11", "");
  WriteTorch("usr/lib/python3.11/site-packages/torch", "2.11.0");
  boost::filesystem::create_directories(temp_.File("venv/bin"));
  boost::filesystem::create_symlink(temp_.File("usr/bin/python3.11"),
                                    temp_.File("venv/bin/python3"));
  const std::string python = temp_.File("venv/bin/python3");
  const std::string home = "home = " + temp_.File("usr/bin") + "\n";
  Write("venv/pyvenv.cfg", home + "include-system-site-packages = false\n");
  EXPECT_THAT(Found(Package(), {}, python), HasSubstr("no PyTorch was found"));
  Write("venv/pyvenv.cfg", home + "include-system-site-packages = true\n");
  EXPECT_EQ(Found(Package(), {}, python), "usr/lib/python3.11/site-packages/torch 2.11");
}

TEST_F(FindTorch, TheLinkAndKeelTorchComeFirst) {
  Write("venv/bin/python3", "");
  Write("venv/pyvenv.cfg", "");
  WriteTorch("venv/lib/python3.12/site-packages/torch", "2.12.1");
  WriteTorch("linked", "2.11.0");
  Write("named/lib/libtorch_cpu.so", "");
  Write("named/build-version", "2.13.0+cpu\n");
  boost::filesystem::create_directories(Package());
  boost::filesystem::create_symlink(temp_.File("linked"), temp_.File("opt/lib/evenkeel/torch"));
  const std::string python = temp_.File("venv/bin/python3");
  EXPECT_EQ(Found(Package(), {}, python), "opt/lib/evenkeel/torch 2.11");
  EXPECT_EQ(Found(Package(), {{"KEEL_TORCH", temp_.File("named")}}, python), "named 2.13");
}

TEST_F(FindTorch, AWheelTakesThatBesideIt) {
  WriteTorch("venv/lib/python3.12/site-packages/torch", "2.12.1");
  EXPECT_EQ(Found(temp_.File("venv/lib/python3.12/site-packages/evenkeel"), {}, ""),
            "venv/lib/python3.12/site-packages/torch 2.12");
}

TEST_F(FindTorch, EnginesAreInTheOrderOfTheirVersions) {
  for (const char* name : {"torch2.10", "torch2.9", "lib"}) {
    Write(std::string("package/") + name + "/libkeel_store_module.so", "");
  }
  Write("package/torch2.14/README", "");
  EXPECT_THAT(EnginesOf(files_, temp_.File("package")), ElementsAre("2.9", "2.10"));
}

TEST_F(FindTorch, ScriptsSeeThePackageBehindWhatTheUserNames) {
  Write("venv/bin/python3", "");
  Write("venv/pyvenv.cfg", "");
  const std::string python = temp_.File("venv/bin/python3");
  const std::string own = temp_.File("opt/lib/evenkeel/python");
  EXPECT_EQ(PackageForWorkers(files_, Package(), {}, python), own);
  EXPECT_EQ(PackageForWorkers(files_, Package(), {{"PYTHONPATH", "/mine"}}, python),
            "/mine:" + own);
  // A wheel's is seen by its Python anyway, and by no other.
  EXPECT_EQ(PackageForWorkers(files_, "/venv/lib/python3.12/site-packages/evenkeel", {}, python),
            "");
  Write("venv/lib/python3.12/site-packages/evenkeel/__init__.py", "");
  EXPECT_EQ(PackageForWorkers(files_, Package(), {}, python), "");
}

}  // namespace
}  // namespace keel
