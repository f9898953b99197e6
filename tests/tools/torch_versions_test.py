"""Runs tests/torch_versions.sh in a made-up world: set-up, cmake and ctest are stand-ins.

Promises   nothing is downloaded or built; what a version does is said by files of the world.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG_LIMIT_S = 60
LINE = "final step=200 trail=0a digest="

SETUP = """
echo "setup $KEEL_TORCH_VERSION $*" >>"$WORLD/calls"
[ ! -e "$WORLD/no_setup_$KEEL_TORCH_VERSION" ] || exit 1
home=$KEEL_DEPS/venv-$KEEL_TORCH_VERSION
mkdir -p "$home/lib/python3.11/site-packages/torch" """
# The program's version is in its folder's name.
CMAKE = """
echo "cmake $*" >>"$WORLD/calls"
case "$1" in
  --preset) folder=$4 ;;
  --build) folder=$2; [ ! -e "$WORLD/no_build_${folder##*/}" ] || exit 1 ;;
esac
mkdir -p "$folder/bin"
cp "$WORLD/bin/minimal_train" "$folder/bin/minimal_train" """
TRAIN = """
here=$(cd "$(dirname "$0")/.." && pwd)
cat "$WORLD/line_${here##*/}" || exit 1
echo "a word of the log" >&2"""
CTEST = """
echo "ctest $*" >>"$WORLD/calls"
if [ -e "$WORLD/hangs" ]; then sleep 600 & echo $! >"$WORLD/pid"; wait; fi
if [ -e "$WORLD/fails_${2##*/}" ]; then
  echo "96% tests passed, 2 tests failed out of 50"; exit 8
fi
echo "100% tests passed, 0 tests failed out of 50" """


class TorchVersions(unittest.TestCase):
    def setUp(self):
        self.world = pathlib.Path(tempfile.mkdtemp(prefix="keel-versions-"))
        self.addCleanup(shutil.rmtree, self.world)
        self.repo = self.world / "repo"
        for name in ("tools/torch.sh", "tests/torch_versions.sh",
                     "packaging/wheel/torch_versions.txt"):
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.repo / name)
        (self.world / "bin").mkdir()
        for path, body in ((self.repo / "tools/setup.sh", SETUP), (self.world / "bin/cmake", CMAKE),
                           (self.world / "bin/ctest", CTEST),
                           (self.world / "bin/minimal_train", TRAIN)):
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)
        self.write(calls="")
        for version in ("2.9.1", "2.11.0", "2.15.0"):
            self.write(**{f"line_{version}": f"{LINE}1f\n"})

    def write(self, **files):
        for name, text in files.items():
            (self.world / name).write_text(text)

    def calls(self):
        return (self.world / "calls").read_text()

    def start(self, *arguments):
        environment = {"PATH": f"{self.world}/bin:{os.environ['PATH']}", "WORLD": str(self.world)}
        return subprocess.Popen([self.repo / "tests/torch_versions.sh", *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    def runs(self, pid):
        """Of one that has ended and that nobody has awaited, /proc still tells."""
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    def run_script(self, *arguments, code=0):
        ran = self.start(*arguments)
        out, err = ran.communicate(timeout=HANG_LIMIT_S)
        self.assertEqual(ran.returncode, code, out + err)
        return out

    def rows(self, *arguments, code=0):
        return json.loads(self.run_script("--json", *arguments, code=code))["versions"]

    def test_each_version_has_a_row_and_a_folder_of_its_own(self):
        table = self.run_script("2.11.0", "2.15.0").splitlines()
        self.assertEqual(len(table), 3)
        self.assertRegex(table[1], rf"^2\.11\.0 +yes +50 passed +{LINE}1f +2\.15\.0$")
        self.assertRegex(table[2], rf"^2\.15\.0 +yes +50 passed +{LINE}1f +2\.11\.0$")
        for version in ("2.11.0", "2.15.0"):
            torch = self.repo / f".deps/venv-{version}/lib/python3.11/site-packages/torch"
            self.assertIn(f"-B {self.repo}/build-torch/{version} -DKEEL_TORCH={torch} ",
                          self.calls())
        self.assertIn("-LE ^gpu$|^nightly$ -R .\n", self.calls())
        self.assertIn("--target all ", self.calls())

    def test_without_arguments_all_of_the_wheel_and_older_ones_are_tried(self):
        rows = self.rows(code=1)   # most of them have no line to print
        versions = [row["version"] for row in rows]
        self.assertEqual([one.rpartition(".")[0] for one in versions],
                         [f"2.{minor}" for minor in range(9, 9 + len(versions))])
        self.assertGreaterEqual(len(versions), 7)

    def test_other_bits_are_no_failure_and_told(self):
        self.write(**{"line_2.9.1": f"{LINE}2e\n"})
        rows = self.rows("2.9.1", "2.11.0", "2.15.0")
        self.assertEqual([row["same"] for row in rows], ["none", "2.15.0", "2.11.0"])
        self.assertEqual(rows[0]["last_line"], f"{LINE}2e")

    def test_it_goes_on_after_a_version_that_fails(self):
        for failing, row in (("no_setup_2.9.1", {"built": "no: setup", "tests": "-"}),
                             ("no_build_2.9.1", {"built": "no: compiler", "tests": "-"}),
                             ("fails_2.9.1", {"built": "yes", "tests": "2 of 50 failed"})):
            self.write(**{failing: ""})
            rows = self.rows("2.9.1", "2.15.0", code=1)
            self.assertEqual(rows[0] | row, rows[0], failing)
            self.assertEqual((rows[1]["built"], rows[1]["tests"]), ("yes", "50 passed"))
            (self.world / failing).unlink()

    def test_a_program_that_does_not_train_fails_its_version_and_the_tests_still_run(self):
        (self.world / "line_2.9.1").unlink()
        row, = self.rows("2.9.1", code=1)
        self.assertEqual((row["last_line"], row["tests"]), ("no: minimal_train", "50 passed"))

    def test_fewer_tests_or_none(self):
        self.run_script("--tests", "^Trainer", "2.15.0")
        self.assertIn(" -R ^Trainer\n", self.calls())
        self.write(calls="")
        row, = self.rows("--no-tests", "2.15.0")
        self.assertEqual((row["built"], row["tests"]), ("yes", "-"))
        self.assertNotIn("ctest", self.calls())
        self.assertIn("--target programs ", self.calls())

    def test_what_its_programs_have_started_dies_with_it(self):
        self.write(hangs="")
        ran = self.start("2.15.0")
        pid = self.world / "pid"
        until = time.monotonic() + HANG_LIMIT_S
        while not (pid.exists() and pid.read_text()):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        ran.terminate()
        ran.communicate(timeout=HANG_LIMIT_S)
        self.assertEqual(ran.returncode, 143)
        while self.runs(pid.read_text().strip()):
            self.assertLess(time.monotonic(), until, "a test of ctest's was left running")
            time.sleep(0.01)

    def test_mistakes_are_two_and_nothing_is_begun(self):
        for arguments in (["--frob"], ["2.15"], ["2.6.0"], ["--tests"]):
            self.run_script(*arguments, code=2)
        self.assertEqual(self.calls(), "")


if __name__ == "__main__":
    unittest.main()
