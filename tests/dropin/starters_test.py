#!/usr/bin/env python3
"""The scripts that most people begin with run unchanged under keelrun and under torchrun, and come
to the same results, to the last bit: starters/.

Skips, and says why, without a Python that has PyTorch; and single scripts where their packages are
missing.
"""
import glob
import os
import subprocess
import sys
import unittest

import launchers

RANKS = 2
# By script: the package that it needs besides PyTorch.
STARTERS = {"echo.py": "", "toy.py": "", "language_model.py": "",
            "text_classifier.py": "transformers", "autoencoder.py": "lightning"}
ARGS = None


def surroundings():
    """Packages of the tests, behind those of PyTorch's own Python."""
    found = glob.glob(f"{ARGS.packages}/lib/python3*/site-packages")
    return {"PYTHONPATH": found[0]} if found else {}


def has(package):
    return not package or subprocess.run(
        [ARGS.python, "-c", f"import {package}"], env={**os.environ, **surroundings()},
        capture_output=True, timeout=launchers.HANG_LIMIT_S, check=False).returncode == 0


def ended(launcher, script, more=None):
    """What the ranks said last, sorted: their order may differ."""
    with launchers.Run() as run:
        run.start(launcher, ["--standalone", f"--nproc-per-node={RANKS}", "--max-restarts=1",
                             f"{launchers.HERE}/starters/{script}"], surroundings() | (more or {}))
        codes, left = run.wait(), run.leftovers()
        if codes != [0] or left:
            raise AssertionError(f"{codes}, left over: {left}\n{run.report()}")
        lines = run.text(0, "out").splitlines()
    return sorted(line for line in lines if line.startswith("ended: "))


class Starters(unittest.TestCase):
    maxDiff = None

    def compare(self, script):
        if not has(STARTERS[script]):
            self.skipTest(f"this Python has no {STARTERS[script]} (tools/setup.sh --tests)")
        ours = ended(launchers.keelrun(ARGS.keelrun, ARGS.python), script)
        self.assertEqual(len(ours), RANKS, ours)
        self.assertEqual(ours, ended(launchers.torchrun(ARGS.python), script))
        return ours

    def test_echo(self):
        self.compare("echo.py")

    def test_toy(self):
        whole = self.compare("toy.py")
        # Under torchrun the second attempt may read what the first one left in the store.
        keelrun = launchers.keelrun(ARGS.keelrun, ARGS.python)
        self.assertEqual(whole, ended(keelrun, "toy.py", {"FAILS_ONCE": "1"}))

    def test_language_model(self):
        self.compare("language_model.py")

    def test_text_classifier(self):
        self.compare("text_classifier.py")

    def test_autoencoder(self):
        self.compare("autoencoder.py")


def main():
    global ARGS
    ARGS, rest = launchers.arguments(
        __doc__, packages="the environment in which transformers and lightning are")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
