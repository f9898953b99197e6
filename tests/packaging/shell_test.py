"""Every shell script of ours, and the completions that the programs print, under shellcheck."""
import os
import subprocess
import unittest

import checks

GIVEN = checks.arguments()
BIN = GIVEN.build / "bin"


def scripts():
    """Files that a shell runs or sources, by their first line or their name."""
    found = []
    for folder, below, names in os.walk(GIVEN.source):
        below[:] = [name for name in below
                    if name == ".ci" or not name.startswith((".", "build", "__", "_deps"))]
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                first = file.readline()
            is_script = first.startswith(b"#!") and first.split(b"/")[-1].split()[-1:] in (
                [b"bash"], [b"sh"])
            if is_script or name.endswith((".sh", ".bash", ".sbatch")):
                found.append(path)
    return sorted(found)


class ShellTest(unittest.TestCase):
    def setUp(self):
        checks.need("shellcheck", "shellcheck")

    def test_scripts(self):
        found = scripts()
        names = {os.path.basename(path) for path in found}
        self.assertLessEqual({"run", "run.sh", "setup.sh", "quickstart.sh", "train.sbatch",
                              "array.sbatch"}, names)
        for path in found:
            with self.subTest(path):
                checks.run("shellcheck", "--norc", "--external-sources",
                              f"--source-path={GIVEN.source}", path)

    def test_completions_of_bash(self):
        printed = {"keel": ["completion", "bash"], "keelrun": ["--completion", "bash"]}
        for name, words in printed.items():
            installed = GIVEN.source / "tools" / name / "completion" / name
            script = checks.run(BIN / name, *words)
            for text in (script, installed.read_text()):
                with self.subTest(name, text=text[:60]):
                    checks.run("shellcheck", "--norc", "--shell=bash", "-", stdin=None,
                                  input=text)

    def test_bash_completes_keelrun(self):
        ask = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_keelrun
printf '%s\\n' "${COMPREPLY[@]}" """
        installed = GIVEN.source / "tools/keelrun/completion/keelrun"
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}"}
        for words, offer in ((["--nno"], "--nnodes\n"), (["--log-format", ""], "text\njson\n"),
                             (["--completion", "z"], "zsh\n")):
            said = checks.run("bash", "--norc", "-c", ask, "ask", installed, "keelrun", *words,
                                 env=environment)
            self.assertEqual(said, offer, words)

    def test_completions_of_zsh_are_zsh(self):
        checks.need("zsh", "zsh")
        for command in (["keel", "completion", "zsh"], ["keelrun", "--completion", "zsh"]):
            script = checks.run(BIN / command[0], *command[1:])
            checks.run("zsh", "-f", "-n", "/dev/stdin", stdin=None, input=script)

    def test_what_is_wrong_is_found(self):
        with self.assertRaises(AssertionError):
            checks.run("shellcheck", "--norc", "--shell=bash", "-", stdin=None,
                          input="cd $1\n", stderr=subprocess.STDOUT)


if __name__ == "__main__":
    checks.main()
