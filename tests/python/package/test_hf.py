#!/usr/bin/env python3
"""A Trainer of Hugging Face's transformers, the real one: the same last line on one worker and on
three, of which one is killed.

Skips, and says why, without a Python that has PyTorch, or without transformers.
"""
import os
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
        self.more = self.with_packages("transformers") | {"HF_HUB_OFFLINE": "1"}

    def test_the_same_line_on_one_worker_and_on_three_of_which_one_dies(self):
        command = [scripts.ARGS.python, "-B", EXAMPLE, STEPS]
        alone = self.line_of(self.alone(*command, **self.more))
        run = self.job_that_loses_a_worker(command, **self.more)
        self.assertEqual(self.line_of(run), alone)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
