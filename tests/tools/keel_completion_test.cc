// keel completion: real shells with the script loaded, asked what they would offer.
#include <cstdlib>

#include "tests/tools/keel_program.h"

namespace keel {
namespace {

// What bash offers for the last of `words`, a line each, sorted.
const char kAskBash[] = R"(
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
$(complete -p keel | sed 's/.*-F \([^ ]*\) .*/\1/')
((${#COMPREPLY[@]})) && printf '%s\n' "${COMPREPLY[@]}" | sort
)";

// What zsh shows on its screen when Tab is pressed behind the line $2, until $3 is there or a
// minute is over. The line is typed when zsh has the terminal (before, the kernel would edit it),
// and nothing is typed behind it: zsh shows no list while it has keys to read.
const char kAskZsh[] = R"(
zmodload zsh/zpty zsh/zselect || exit 77
zpty -b shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; source '$1
zpty -w shell 'LISTMAX=1000; setopt no_beep'
zpty -w shell 'zle-line-init() { print -rn re""ady >/dev/tty }; zle -N zle-line-init'

# Appends to $text what comes until it holds $1.
await() {
  local part
  while [[ $text != *$1* ]] && ((SECONDS < 60)); do
    zpty -rt shell part && text+=$part || zselect -t 1
  done
}
await ready
text=
zpty -n -w shell "$2"$'\t\t'
await $3
print -r -- "$text"
)";

class KeelCompletion : public KeelProgram {
 protected:
  void SetUp() override {
    for (const char* shell : {"bash", "zsh"}) {
      const Ran ran = RunKeel(std::string("completion ") + shell);
      ASSERT_EQ(ran.exit_code, 0) << ran.out;
      WriteFile(std::string("completion.") + shell, ran.out);
    }
    WriteFile("ask.bash", kAskBash);
    WriteFile("ask.zsh", kAskZsh);
  }
  void WriteFile(const std::string& name, const std::string& content) {
    ASSERT_OK(WriteDurably(files_, dir_.File(name), content));
  }
  // `words` are in the shell's quoting.
  std::string Bash(const std::string& words) {
    return Shell("bash --norc " + dir_.File("ask.bash") + " " + dir_.File("completion.bash") +
                 " keel " + words);
  }
  std::string Shell(const std::string& command) {
    FILE* const pipe = ::popen(("cd " + dir_.path() + " && " + command + " 2>&1").c_str(), "r");
    std::string out;
    char buffer[4096];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      out.append(buffer, got);
    }
    ::pclose(pipe);
    return out;
  }
};

TEST_F(KeelCompletion, BashOffersCommands) {
  EXPECT_EQ(Bash("ve"), "verify\n");
  EXPECT_EQ(Bash("p"), "pin\nplot\n");
  const std::string all = Bash("''");
  for (const char* name : {"ls\n", "cat\n", "repair\n", "completion\n"}) {
    EXPECT_NE(all.find(name), std::string::npos) << all;
  }
}

TEST_F(KeelCompletion, BashOffersCommandsToWhoWantsAPageOfOne) {
  EXPECT_EQ(Bash("man ve"), "verify\n");
  EXPECT_EQ(Bash("man completion."), "") << "files are no commands";
}

TEST_F(KeelCompletion, BashOffersOptionsOfTheCommand) {
  EXPECT_EQ(Bash("cat --f"), "--format\n");
  EXPECT_EQ(Bash("gc --dry"), "--dry-run\n");
  EXPECT_EQ(Bash("gc --no-d"), "--no-dry-run\n");
  EXPECT_EQ(Bash("ls --f"), "") << "an option of another command";
}

TEST_F(KeelCompletion, BashOffersChoicesWithBlankAndWithEqualsSign) {
  EXPECT_EQ(Bash("cat --format ''"), "npy\ntext\n");
  EXPECT_EQ(Bash("cat --format n"), "npy\n");
  EXPECT_EQ(Bash("cat --format ="), "npy\ntext\n");
  EXPECT_EQ(Bash("cat --format = t"), "text\n");
  EXPECT_EQ(Bash("completion ''"), "bash\nzsh\n");
}

TEST_F(KeelCompletion, BashOffersDirectoriesAndFilesWhereTheyBelong) {
  ASSERT_OK(files_.MakeDir(dir_.File("runs")));
  ASSERT_OK(files_.MakeDir(dir_.File("runs two")));
  WriteFile("running", "");
  EXPECT_EQ(Bash("ls ru"), "runs\nruns two\n");
  EXPECT_EQ(Bash("repair x ru"), "runs\nruns two\n");
  EXPECT_EQ(Bash("cat x y --output ru"), "running\nruns\nruns two\n");
  EXPECT_EQ(Bash("gc --keep ''"), "") << "a number";
}

TEST_F(KeelCompletion, TheInstalledFilesAskTheProgram) {
  const std::string source = KEEL_SOURCE_DIR "/tools/keel/completion/";
  const std::string path = "PATH=" KEEL_BIN_DIR ":$PATH ";
  EXPECT_EQ(Shell(path + "bash --norc " + dir_.File("ask.bash") + " " + source +
                  "keel keel verify --js"),
            "--json\n");
  if (Shell("command -v zsh").empty()) GTEST_SKIP() << "this machine has no zsh";
  EXPECT_EQ(Shell(path + "zsh -f -c 'compdef() { print $@ }; _arguments() {}; _describe() {}; "
                         "source " + source + "_keel'"),
            "_keel keel\n");
}

TEST_F(KeelCompletion, ZshOffersTheSame) {
  if (Shell("command -v zsh").empty()) GTEST_SKIP() << "this machine has no zsh";
  const std::string script = dir_.File("completion.zsh");
  EXPECT_EQ(Shell("zsh -f -n " + script), "") << "a syntax error";
  const auto expect_offer = [&](const std::string& line, const std::string& offer) {
    const std::string shown = Shell("zsh -f " + dir_.File("ask.zsh") + " " + script + " '" + line +
                                    "' '" + offer + "'");
    EXPECT_NE(shown.find(offer), std::string::npos) << shown;
  };
  expect_offer("keel ", "check every digest");
  expect_offer("keel cat --format ", "npy   text");
  expect_offer("keel gc --partial=", "all  ");
}

TEST_F(KeelCompletion, AnUnknownShellIsNamed) {
  const Ran ran = RunKeel("completion zhs");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_EQ(RunKeel("man lss").exit_code, 2);
  EXPECT_NE(ran.out.find("did you mean 'zsh'"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace keel
