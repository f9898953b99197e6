#!/usr/bin/env python3
"""Workers that exchange over the NCCL module, with a stand-in for NCCL, die in its calls.

Promises   each worker kills itself at one of its calls, drawn at random, until --kills have died:
           while it forms a group, enqueues, looks, revokes or aborts. With --hangs, one of so many
           aborts hangs for ever. Every job ends with the last line and the losses of a quiet run on
           one worker; nobody else ends; nobody hangs for longer than the hang limit.
"""
import collections
import os
import re
import time

import soak_job


def survive(args, workers, options, expected, kill_at):
    """How many workers ended in which way, from what the launcher logs."""
    os.environ["KEEL_STANDIN_KILL"] = str(kill_at)
    os.environ["KEEL_STANDIN_HANG"] = str(args.hangs)
    job = soak_job.Job(args, workers, options)
    del os.environ["KEEL_STANDIN_KILL"], os.environ["KEEL_STANDIN_HANG"]
    with job:
        line, _ = job.finish()
        if line != expected[0]:
            raise RuntimeError(f"bits differ: {line} instead of {expected[0]}")
        job.compare(expected[1])
        return ends(job)


def ends(job):
    found = collections.Counter()
    with open(job.log.name, encoding="utf-8") as log:
        for line in log:
            if " worker-died " in line:
                found[re.search(r"how=(\"[^\"]*\"|\S+)", line)[1]] += 1
    return found


def main():
    parser = soak_job.parser(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--kill-at", type=int, default=3000, help="one of so many calls")
    parser.add_argument("--hangs", type=int, default=0, help="one of so many aborts; 0: none")
    args = parser.parse_args()
    os.environ["KEEL_STANDIN_SLOW_US"] = "2000"
    runs = soak_job.QuietRuns(args)
    died, job, all_ends = 0, 0, collections.Counter()
    while died < args.kills:
        model = args.models[job % len(args.models)]
        workers = args.workers[job % len(args.workers)]
        expected = runs.expected(model)
        begun = time.monotonic()
        now = survive(args, workers, runs.options(model), expected, args.kill_at)
        all_ends += now
        died, job = died + sum(now.values()), job + 1
        print(f"{model} on {workers} workers: {dict(now)}, the same last line, "
              f"{time.monotonic() - begun:.1f} s; {died} of {args.kills}", flush=True)
    print(f"all {died} deaths in {job} jobs left the same bits: {dict(all_ends)}", flush=True)


if __name__ == "__main__":
    main()
