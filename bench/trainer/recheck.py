#!/usr/bin/env python3
"""What it costs that workers compute some lanes twice, and compare all gradients.

Promises   JSON lines, one for each run: two workers of gpt_bench recheck every other step, so that
           steps with and without take turns. `plain_s` and `rechecked_s` are their medians,
           `lane_s` is that of one lane's data, forward and backward, `percent` is what the default
           of --recheck-every makes of the difference, in percent of a plain step.
Does not   measure several hosts: digests are all that a recheck sends.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

import common

WARM = 6          # steps
LANES_EACH = 1    # of two workers, with gpt_bench's own --lanes
USUAL = 200       # lanes of a worker's own for one of another one's, by default


def steps_of(path):
    """(seconds that it took, whether it was rechecked, seconds of its lanes)"""
    with open(path, encoding="utf-8") as file:
        told = [one for one in map(json.loads, file) if one["event"] == "step"]
    for before, one in zip(told[WARM:], told[WARM + 1:]):
        ms = one["ms"]
        yield ((one["wall_ns"] - before["wall_ns"]) / 1e9, ms["recheck"] > 0,
               (ms["data"] + ms["forward"] + ms["backward"]) / 1e3)


def measure(args, size):
    with tempfile.TemporaryDirectory(prefix="keel-recheck-") as folder:
        path = os.path.join(folder, "log.jsonl")
        subprocess.run(common.keelrun(args.bin, 2, "--no-python", f"{args.bin}/gpt_bench",
                                      *common.SIZES[size], f"--steps={args.steps}",
                                      "--recheck-every=2", "--log-every=1", f"--log-jsonl={path}"),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={**os.environ, "OMP_NUM_THREADS": "1"})
        steps = list(steps_of(path))
    plain = statistics.median(took for took, again, _ in steps if not again)
    rechecked = statistics.median(took for took, again, _ in steps if again)
    every = USUAL // LANES_EACH
    common.put(what="recheck", size=size, steps=len(steps), plain_s=plain, rechecked_s=rechecked,
               lane_s=statistics.median(lane for _, again, lane in steps if not again),
               percent=(rechecked - plain) / plain / every * 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    for _ in range(args.rounds):
        for size in common.SIZES:
            measure(args, size)


if __name__ == "__main__":
    main()
