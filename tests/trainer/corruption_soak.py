#!/usr/bin/env python3
"""Lets one worker of a job compute one bit wrongly, once or always, and looks who is named for it.

Promises   every step is rechecked: a gradient, a loss, a buffer, a sum of all gradients, or the
           optimizer's state. A job in which another worker is named than the one that was
           wrong, or nobody, or not at that step, or that ends with another line than a quiet run,
           is a failure. The same seed draws the same faults.
"""
import os
import random
import re
import time

import soak_job

RULE = "KEEL_RIGGED_BITS"
NAMED = re.compile(r'corruption step=(\d+) in=.* member="rank (\d+) ')
FAILED = re.compile(r"worker-died rank=\d+ local_rank=(\d+) [^\n]*"
                    r"(?:do not trust this machine|than most others)")


def draw(rng, args, model, workers):
    """(rank, step, how, what, where)"""
    what = rng.choice(["gradient", "gradient", "loss", "sum", "sum"] +
                      (["buffer"] if model == "resnet" else []) +
                      (["state"] if workers > 2 else []))
    # Of two that differ each time, nobody can tell which one is wrong; and a bit of a state that is
    # flipped in each lane may be as it was when it is compared.
    how = rng.choice(["once", "always"]) if workers > 2 and what != "state" else "once"
    return rng.randrange(workers), rng.randrange(args.steps), how, what, rng.randrange(1 << 30)


def round_of(args, workers, fault, options, expected):
    rank, step = fault[:2]
    os.environ[RULE] = " ".join(map(str, fault))
    try:
        with soak_job.Job(args, workers, [*options, "--recheck-every=1"]) as job:
            code = job.end()
            with open(job.log.name, encoding="utf-8", errors="replace") as log:
                text = log.read()
            lines = sorted(set(job.final))
            if code != 0 or lines != [expected[0]]:
                raise RuntimeError(f"the job ended with {code} and {lines}, not {expected[0]}")
            job.compare(expected[1])
            named = [(int(one[1]), int(one[2])) for one in NAMED.finditer(text)]
            if not named or named[0] != (step, rank):
                raise RuntimeError(f"{named} were named, not {(step, rank)}")
            if {int(one) for one in FAILED.findall(text)} != {rank}:
                raise RuntimeError(f"others failed than rank {rank}")
    finally:
        del os.environ[RULE]


def main():
    parser = soak_job.parser(__doc__)
    parser.set_defaults(steps=40)
    parser.add_argument("--rounds", type=int, default=100)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    print(f"seed {args.seed}", flush=True)
    quiet_runs = soak_job.QuietRuns(args)
    begun = time.monotonic()
    for number in range(args.rounds):
        model, workers = args.models[number % len(args.models)], 2 + number % 4
        fault = draw(rng, args, model, workers)
        way = rng.choice([[], ["--played"], ["--read-memory-from=1"]])
        try:
            round_of(args, workers, fault, quiet_runs.options(model) + way,
                     quiet_runs.expected(model))
        except RuntimeError as error:
            raise RuntimeError(f"{model} on {workers} workers, {way}, {fault}: {error}") from None
        if (number + 1) % 100 == 0:
            print(f"{number + 1} rounds, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{args.rounds} of {args.rounds} wrong bits were found in their step, and the right "
          f"worker named; {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
