#!/usr/bin/env python3
"""The kill soak of tests/trainer with workers in Python, which also die as they load samples, in
callbacks, in an evaluation and in the optimizer's step.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "dropin"),
                os.path.join(HERE, "..", "..", "trainer")]
import kill_soak
import launchers
import scripts

# Samples are loaded by the script, or ahead by processes of its own.
WAYS = [[], ["--workers=2"]]
MORE = {"mlp": ["--optimizer=engine", "--augment"],
        "norms": ["--optimizer=SGD", "--evaluate-every=7"],
        "gpt": ["--optimizer=AdamW", "--schedule-of=cosine", "--clip=0.5"],
        "wide": ["--optimizer=AdamW", "--schedule-of=cosine", "--clip=0.5", "--average"]}

if __name__ == "__main__":
    args, rest = scripts.parsed(__doc__, launchers.find_python)
    os.environ.update(scripts.environment())
    sys.argv[1:] = ["--keelrun", args.keelrun, "--interpreter", args.python,
                    "--models", *MORE, "--workers", "2", "3", "5", *rest]
    kill_soak.main(WAYS, MORE, ["wide"])
