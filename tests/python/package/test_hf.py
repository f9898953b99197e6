#!/usr/bin/env python3
"""A Trainer of Hugging Face's transformers, the real one: the same last line on one worker and on
three, of which one is killed.

Skips, and says why, without a Python that has PyTorch, or without transformers.
"""
import glob
import os
import signal
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dropin")]
import launchers
import scripts

EXAMPLE = os.path.join(scripts.HERE, "..", "..", "..", "examples", "python", "fine_tune.py")
STEPS = "200"


class Tuned(scripts.Case):
    def setUp(self):
        super().setUp()
        found = glob.glob(f"{scripts.ARGS.packages}/lib/python3*/site-packages/transformers")
        if not found:
            self.skipTest("there is no transformers; tools/setup.sh --tests installs it")
        self.more = {"PYTHONPATH": scripts.ARGS.package + os.pathsep + os.path.dirname(found[0]),
                     "HF_HUB_OFFLINE": "1"}
        self.command = [scripts.ARGS.python, "-B", EXAMPLE, STEPS]
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)

    def test_the_same_line_on_one_worker_and_on_three_of_which_one_dies(self):
        alone = self.line_of(self.alone(*self.command, **self.more))
        process = scripts.start(scripts.under_keelrun(3, self.command, "--max-restarts=3"),
                                **self.more)
        told = []
        for line in process.stderr:
            told.append(line)
            if "info evaluation " in line:
                break
        os.kill(self.workers_of(process.pid)[-1], signal.SIGKILL)
        rest = scripts.end(process)
        run = scripts.Run(rest.code, rest.out, "".join(told) + rest.err)
        self.assertEqual(self.line_of(run), alone)
        self.assertIn("killed by signal 9", run.err)

    @staticmethod
    def workers_of(pid):
        found = []
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            with open(path, encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        return found


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
