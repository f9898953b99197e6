#!/usr/bin/env python3
"""Kills workers of training jobs at random and compares their last lines with a quiet run's.

Promises   the jobs lose --kills workers: single ones, pairs, some stopped (SIGSTOP) a moment
           before, some while the next group is being built, some newcomers that have made no
           step yet; the same seed draws the same kinds and pauses. A job that ends with another
           line, that tells of a step with other losses than the quiet run, that ends with another
           exit code, or that stands still for longer than the hang limit is a failure.
Does not   care which worker is hit at which moment: that is the scheduler's.
"""
import glob
import os
import random
import signal
import time

import soak_job

ARGS = None


def victims(job, newcomers):
    """All workers, or those that have made no step yet."""
    found, parents = [], [job.process.pid]
    while parents:
        children = children_of(parents.pop())
        parents += children
        found += [pid for pid in children if is_worker(pid)]
    return [pid for pid in found if not (newcomers and pid in job.spoke)]


def children_of(pid):
    children = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                children += [int(word) for word in file.read().split()]
        except OSError:
            pass   # it has ended
    return children


def is_worker(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == ARGS.name
    except OSError:
        return False


def kill(pid, stop_first, pause):
    try:
        if stop_first:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(pause)
        os.kill(pid, signal.SIGKILL)
        return True
    except OSError:
        return False


# These models' gradients are small: by default they are sent, so that half of the jobs read them.
TRAVELS = [[], ["--read-memory-from=1"]]
# Compared twice: some lanes now and then, or one of each worker in every step.
COMPARED = [[], ["--recheck-every=1"]]
# Whether workers train by callbacks or, as a script does, by tasks; the quiet run has callbacks.
WAYS = [[], ["--played"]]


# Of fewer kills none may leave a worker with a state and another one to catch up with it.
LARGE_CATCHES_UP_FROM = 100
KINDS = ["single", "single", "double", "stopped", "forming", "newcomer"]


def shoot(job, rng, left):
    """One volley; how many died. None when the job has ended."""
    kind = rng.choice(ARGS.kinds)
    if not job.wait_for_lines(rng.randrange(1, 10)):
        return None
    time.sleep(rng.uniform(0, 0.02))
    died = 0
    for shot in range(2 if kind in ("double", "forming") and left > 1 else 1):
        if kind == "forming" and shot == 1:
            time.sleep(rng.uniform(0, 0.02))   # the next group is being built
        pids = victims(job, kind == "newcomer")
        if pids:
            died += kill(rng.choice(pids), kind == "stopped", rng.uniform(0, 0.02))
    return died


def survive(workers, kills, rng, options, expected):
    """How many died before the job ended, how many newcomers caught up with the others, and how
    many steps workers made beside others; raises where it is not as `expected`: line and losses."""
    # So many steps that the job outlives its kills; only the quiet run's count is compared.
    with soak_job.Job(ARGS, workers, options) as job:
        died = 0
        while died < kills:
            more = shoot(job, rng, kills - died)
            if more is None:
                break
            died += more
        line, _ = job.finish()
        if line != expected[0]:
            raise RuntimeError(f"bits differ: {line} instead of {expected[0]}")
        job.compare(expected[1])
        return died, job.caught_up, job.beside


def main(ways=WAYS, more=None, large=()):
    """`ways`: options that change no bit; `more`: further options, by model; `large`: models whose
    state newcomers catch up with: one of them must."""
    global ARGS
    parser = soak_job.parser(__doc__)
    parser.add_argument("--kills", type=int, default=300, help="in all")
    parser.add_argument("--kills-a-job", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--kinds", nargs="+", choices=sorted(set(KINDS)), default=KINDS)
    ARGS = parser.parse_args()
    ARGS.name = os.path.basename(os.path.realpath(ARGS.interpreter or ARGS.program))
    rng = random.Random(ARGS.seed)
    print(f"seed {ARGS.seed}", flush=True)
    quiet_runs = soak_job.QuietRuns(ARGS, more)
    died, job, caught_up, of_large, compared = 0, 0, 0, 0, 0
    while died < ARGS.kills:
        model = ARGS.models[job % len(ARGS.models)]
        workers = ARGS.workers[job % len(ARGS.workers)]
        expected = quiet_runs.expected(model)
        begun = time.monotonic()
        travel, compare = rng.choice(TRAVELS), rng.choice(COMPARED)
        now, here, steps = survive(workers, min(ARGS.kills_a_job, ARGS.kills - died), rng,
                                   quiet_runs.options(model) + travel + compare +
                                   ways[job % len(ways)], expected)
        died, job, caught_up = died + now, job + 1, caught_up + here
        compared += steps if compare else 0
        of_large += here if model in large else 0
        print(f"{model} on {workers} workers: {now} kills, the same last line, "
              f"{time.monotonic() - begun:.1f} s; {died} of {ARGS.kills}", flush=True)
    if large and of_large == 0 and ARGS.kills >= LARGE_CATCHES_UP_FROM:
        raise RuntimeError(f"no newcomer caught up with {large}")
    print(f"all {died} kills in {job} jobs left the same bits; {caught_up} newcomers caught up; "
          f"{compared} lanes were compared without an alarm", flush=True)


if __name__ == "__main__":
    main()
