#!/usr/bin/env python3
"""Two scripts as users of DDP write them run unchanged under keelrun and under torchrun, with the
same numbers to the last bit: undisturbed, and with a crash from which they resume.

PyTorch itself can crash a rank that has already done everything: a thread of Gloo lets go of a
Python tensor while the interpreter ends (3 of 44 runs without any launcher, on a machine with three
times as much to do as it has processors). Either launcher starts the ranks again then, they find
nothing left to do, and the last line comes twice. A restart for any other reason fails the test.

Skips, and says why, without a Python that has PyTorch.
"""
import functools
import re
import sys
import unittest

import launchers

SCRIPTS = {
    "regression.py": lambda folder, crash: ["--checkpoint", f"{folder}/ckpt.pt", "--epochs=4",
                                            f"--crash-epoch={crash}"],
    "classifier.py": lambda folder, crash: [f"{folder}/ckpt.pt", "4", str(crash)],
}
RANKS = 2
CRASH_AT_THE_END = "terminate called without an active exception"
ARGS = None


def train(launcher, script, crash=-1):
    """What it printed of results, each line once: their order may differ."""
    with launchers.Run() as run:
        run.start(launcher, ["--standalone", f"--nproc-per-node={RANKS}", "--max-restarts=2",
                             f"{launchers.HERE}/{script}", *SCRIPTS[script](run.folder, crash)])
        codes, left = run.wait(), run.leftovers()
        if codes != [0] or left:
            raise AssertionError(f"{codes}, left over: {left}\n{run.report()}")
        lines = run.text(0, "out").splitlines()
        attempts = sum("starts at epoch" in line for line in lines) / RANKS
        if crash < 0 and attempts != 1 and CRASH_AT_THE_END not in run.text(0, "err"):
            raise AssertionError(f"{attempts} attempts without a reason\n{run.report()}")
    return sorted({line for line in lines if re.search(r"loss|ended", line)})


@functools.cache  # two tests of each script ask for it
def whole(script):
    return train(launchers.keelrun(ARGS.keelrun, ARGS.python), script)


def meet(launcher, how):
    with launchers.Run() as run:
        run.start(launcher, ["--standalone", f"--nproc-per-node={RANKS}",
                             f"{launchers.HERE}/meet.py", how])
        codes = run.wait()
        if codes != [0]:
            raise AssertionError(f"{codes}\n{run.report()}")
        return sorted(re.findall(r"rank \d+ met by \w+: \d+;", run.text(0, "out")))


class Scripts(unittest.TestCase):
    maxDiff = None

    def meet(self, launcher):
        """By the environment, and by an address made of it."""
        for how in ("env", "tcp"):
            with self.subTest(how):
                self.assertEqual(meet(launcher, how),
                                 [f"rank {rank} met by {how}: 3;" for rank in range(RANKS)])

    def test_ranks_meet_under_ours(self):
        self.meet(launchers.keelrun(ARGS.keelrun, ARGS.python))

    def test_ranks_meet_under_theirs(self):
        self.meet(launchers.torchrun(ARGS.python))

    def compare(self, script):
        theirs = train(launchers.torchrun(ARGS.python), script)
        self.assertTrue(any("ended with" in line for line in theirs), theirs)
        self.assertEqual(whole(script), theirs)

    def resume(self, script):
        halves = train(launchers.keelrun(ARGS.keelrun, ARGS.python), script, crash=2)
        self.assertEqual(whole(script), halves)

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
    ARGS, rest = launchers.arguments(__doc__)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
