#!/usr/bin/env python3
"""Two scripts as users of DDP write them run unchanged under keelrun and under torchrun, with the
same numbers to the last bit: undisturbed, and with a crash from which they resume.

Skips, and says why, without a Python that has PyTorch.
"""
import argparse
import functools
import os
import re
import sys
import unittest

import launchers

SCRIPTS = {
    "regression.py": lambda folder, crash: ["--checkpoint", f"{folder}/ckpt.pt", "--epochs=4",
                                            f"--crash-epoch={crash}"],
    "classifier.py": lambda folder, crash: [f"{folder}/ckpt.pt", "4", str(crash)],
}
ARGS = None


def train(launcher, script, crash=-1):
    """The lines about results, in order: the ranks' own lines may interleave."""
    with launchers.Run() as run:
        run.start(launcher, ["--standalone", "--nproc-per-node=2", "--max-restarts=1",
                             f"{launchers.HERE}/{script}", *SCRIPTS[script](run.folder, crash)])
        codes, left = run.wait(), run.leftovers()
        if codes != [0] or left:
            raise AssertionError(f"{codes}, left over: {left}\n{run.report()}")
        lines = run.text(0, "out").splitlines()
    return sorted(line for line in lines if re.search(r"loss|ended", line))


@functools.cache  # two tests of each script ask for it
def whole(script):
    return train(launchers.keelrun(ARGS.keelrun, ARGS.python), script)


def results(lines):
    """Without where an attempt began; of epochs that two attempts did, one."""
    return sorted({re.sub(r"began at \d+ ", "", line) for line in lines})


def meet(launcher, how):
    with launchers.Run() as run:
        run.start(launcher, ["--standalone", "--nproc-per-node=2", f"{launchers.HERE}/meet.py",
                             how])
        codes = run.wait()
        if codes != [0]:
            raise AssertionError(f"{codes}\n{run.report()}")
        return sorted(re.findall(r"rank \d+ met by \w+: \d+;", run.text(0, "out")))


class Scripts(unittest.TestCase):
    maxDiff = None

    def test_ranks_meet_by_the_environment_and_by_an_address_made_of_it(self):
        for launcher in (launchers.keelrun(ARGS.keelrun, ARGS.python),
                         launchers.torchrun(ARGS.python)):
            for how in ("env", "tcp"):
                with self.subTest(f"{launcher.name}, {how}"):
                    self.assertEqual(meet(launcher, how),
                                     [f"rank {rank} met by {how}: 3;" for rank in range(2)])

    def compare(self, script):
        theirs = train(launchers.torchrun(ARGS.python), script)
        self.assertTrue(any("ended with" in line for line in theirs), theirs)
        self.assertEqual(whole(script), theirs)

    def resume(self, script):
        halves = train(launchers.keelrun(ARGS.keelrun, ARGS.python), script, crash=2)
        self.assertEqual(results(whole(script)), results(halves))

    def test_regression_has_the_same_bits_under_both(self):
        self.compare("regression.py")

    def test_classifier_has_the_same_bits_under_both(self):
        self.compare("classifier.py")

    def test_regression_resumes_after_a_crash(self):
        self.resume("regression.py")

    def test_classifier_resumes_after_an_exception(self):
        self.resume("classifier.py")


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--torch", default="", help="LibTorch's folder, within a Python")
    ARGS, rest = parser.parse_known_args()
    ARGS.python, why_not = launchers.find_python(ARGS.torch)
    if ARGS.python is None:
        launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
        return
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
