#!/usr/bin/env python3
"""What the scripts of bench/ share: whose PyTorch the peers run with, and who takes turns when.

Promises   nothing is measured, built or downloaded: builds and Pythons are stand-ins.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH / "elastic"))
sys.path.insert(0, str(BENCH / "compare"))

import measure  # noqa: E402
import peers  # noqa: E402


class BenchPython(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="keel-bench-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build = self.root / "build"
        self.build.mkdir()

    def python(self, home, says):
        """A Python of that environment; its torch says so."""
        python = self.root / home / "bin/python3"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{says}\n")
        python.chmod(0o755)
        torch = self.root / home / "lib/python3.11/site-packages/torch"
        torch.mkdir(parents=True)
        return python, torch

    def built(self, version, torch="", test_python=""):
        (self.build / "keel_torch_version.txt").write_text(f"{version}\n")
        (self.build / "CMakeCache.txt").write_text(f"KEEL_TORCH:STRING={torch}\n"
                                                   f"KEEL_TEST_PYTHON:STRING={test_python}\n")

    def ask(self, function="BenchPython", code=0, **more):
        done = subprocess.run(
            ["bash", "-c", 'set -euo pipefail; root=$1; source "$2"; said=$("$3" "$1/build"); '
             'echo "$said"', "bash", self.root, BENCH / "torch_python.sh", function],
            capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], **more})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.strip() if code == 0 else done.stderr

    def test_it_is_that_of_the_torch_that_was_built_with(self):
        self.python(".deps/venv", "echo 2.15.0")
        python, torch = self.python("elsewhere/venv-2.11.0", "echo 2.11.0")
        self.built("2.11.0", torch)
        self.assertEqual(self.ask(), str(python))

    def test_where_none_was_named_it_is_that_of_the_downloads(self):
        python, _ = self.python(".deps/venv", "echo a warning; echo 2.15.0")
        self.built("2.15.0")
        self.assertEqual(self.ask(), str(python))

    def test_another_version_is_refused(self):
        _, torch = self.python("changed", "echo 2.15.0")
        self.built("2.11.0", torch)
        self.assertIn(f"has PyTorch 2.15.0, and {self.build} was made with 2.11.0",
                      self.ask(code=1))

    def test_a_libtorch_without_python_needs_one_that_is_named(self):
        self.built("2.11.0", self.root / "libtorch")
        self.assertIn("KEEL_BENCH_PYTHON=", self.ask(code=1))
        named, _ = self.python("named", "echo 2.11.0")
        self.assertEqual(self.ask(KEEL_BENCH_PYTHON=str(named)), str(named))
        other, _ = self.python("other", "echo 2.12.0")
        self.assertIn("has PyTorch 2.12.0", self.ask(code=1, KEEL_BENCH_PYTHON=str(other)))

    def test_a_torch_that_cannot_be_imported_is_told_with_pythons_reason(self):
        _, torch = self.python("broken", "echo 'ImportError: gone' >&2; exit 1")
        self.built("2.11.0", torch)
        self.assertIn("cannot import torch: ImportError: gone", self.ask(code=1))

    def test_what_is_no_build_is_refused(self):
        self.assertIn("is no build with LibTorch", self.ask(code=1))

    def test_packages_of_tests_are_those_of_the_build(self):
        self.python(".deps/python-tests", "echo /wrong")
        python, _ = self.python("packages", "echo /right")
        self.built("2.11.0", test_python=python)
        self.assertEqual(self.ask("TestPython"), str(python))
        self.assertEqual(self.ask("TestPackages"), "/right")

    def test_no_other_file_of_bench_names_a_folder_of_downloads(self):
        files = [path for ending in ("sh", "py") for path in BENCH.rglob(f"*.{ending}")]
        naming = {path.name for path in files if re.search(r"\.deps\b", path.read_text())}
        self.assertEqual(naming, {"torch_python.sh"})


class Environment(peers.Environment):
    """Made without pip, in no time."""

    def run(self, command):
        made = pathlib.Path(command[-1])
        (made / "lib/python3.11/site-packages").mkdir(parents=True)
        (made / "bin").mkdir()
        (made / "bin/python").touch()


class PeersEnvironment(unittest.TestCase):
    def test_it_is_made_anew_for_another_torch(self):
        with tempfile.TemporaryDirectory(prefix="keel-bench-test-") as folder:
            for version in ("old", "new"):
                pathlib.Path(folder, version, "torch").mkdir(parents=True)
                pathlib.Path(folder, version, "torch/__init__.py").touch()
            os.environ["PYTHONPATH"] = f"{folder}/old"
            self.addCleanup(os.environ.pop, "PYTHONPATH", None)
            said = []
            environment = Environment(f"{folder}/peers", sys.executable, said.append)
            self.assertIsNone(environment.make())
            pathlib.Path(folder, "peers/kept").touch()
            self.assertIsNone(environment.make())
            self.assertTrue(pathlib.Path(folder, "peers/kept").exists())
            os.environ["PYTHONPATH"] = f"{folder}/new"
            self.assertIsNone(environment.make())
            link, = pathlib.Path(folder).glob("peers/lib/python3*/site-packages/torch.pth")
            self.assertEqual(link.read_text(), f"{os.path.realpath(folder)}/new\n")
            self.assertFalse(pathlib.Path(folder, "peers/kept").exists())
            self.assertEqual(len(said), 1)


class Turns(unittest.TestCase):
    def test_both_launchers_take_turns_among_foreign_kills(self):
        for kills, runs in ((200, 10), (7, 3), (2, 5), (4, 0), (0, 4)):
            with self.subTest(kills=kills, runs=runs):
                turns = measure.turns(kills, runs)
                self.assertEqual((turns.count("keelrun"), turns.count("torchrun")), (kills, runs))
                for at in range(len(turns) + 1):   # no more than one job ahead of its share
                    ours, theirs = turns[:at].count("keelrun"), turns[:at].count("torchrun")
                    if kills and runs:
                        self.assertLess(abs(ours / kills - theirs / runs),
                                        1 / kills + 1 / runs)
        self.assertEqual(measure.turns(4, 2), ["keelrun", "keelrun", "torchrun"] * 2)


if __name__ == "__main__":
    unittest.main()
