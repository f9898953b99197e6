#!/usr/bin/env python3
"""Stops training jobs at random, goes on with them on other numbers of workers, and compares their
last lines with a quiet run's.

Promises   --stops jobs are stopped: at once or after some steps, while workers start, train, save
           or join; by a signal to the launcher, to one worker before it, twice in a row, or beside
           a worker that is killed. A job that ends with anything but 75 (or 0, where it was done
           already), that goes on from an earlier step than was told, whose last line or losses
           differ, or that stands still for longer than the hang limit is a failure.
Does not   judge how long a stop takes: it prints the longest.
"""
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import soak_job

ARGS = None


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass   # it has ended


def stop(job, rng):
    """One way to stop; whether a worker was killed beside it, and how long it took."""
    job.wait_for_launcher()   # a signal before it listens would end it as any program
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0, 1))            # before anything was told, perhaps
    else:
        job.wait_for_lines(rng.randrange(1, 60))
    time.sleep(rng.uniform(0, 0.02))
    kind = rng.choice(["plain", "plain", "twice", "worker first", "killed"])
    victim = rng.choice(sorted(job.pids.values())) if job.pids else None
    if kind == "worker first" and victim:
        send(victim, rng.choice([signal.SIGTERM, signal.SIGUSR1]))
        time.sleep(rng.uniform(0, 0.1))
    # Somebody must be left who holds the state.
    killed = kind == "killed" and victim is not None and job.workers > 1
    kill_first = rng.random() < 0.5
    if killed and kill_first:
        send(victim, signal.SIGKILL)
        time.sleep(rng.uniform(0, 0.05))
    begun = time.monotonic()
    send(job.process.pid, rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]))
    if killed and not kill_first:
        time.sleep(rng.uniform(0, 0.02))
        send(victim, signal.SIGKILL)
    if kind == "twice":
        time.sleep(rng.uniform(0, 0.05))
        send(job.process.pid, signal.SIGTERM)
    return kind, killed, begun


def chain(options, expected, stops, rng):
    """Stops and goes on until the job is done; how many stops there were."""
    folder, done, told, slowest = tempfile.mkdtemp(prefix="stop-soak-"), 0, 0, 0.0
    every = rng.choice([0, 1, 3, 7])
    try:
        while True:
            last = done >= stops
            pause = "0" if last else "3ms"
            job = soak_job.Job(ARGS, rng.choice(ARGS.workers), options + [
                "--checkpoint-dir", folder, "--save-every", str(every), "--pause", pause],
                max_restarts=1000)
            kind = "none"
            try:
                with job:
                    killed = False
                    if not last:
                        kind, killed, begun = stop(job, rng)
                    code = job.end()
                    if not last:
                        slowest = max(slowest, time.monotonic() - begun)
                    if job.told and job.resumed is None and told > 0:
                        raise RuntimeError(f"begun anew, although step {told} was told before")
                    if job.resumed is not None and job.resumed < told:
                        raise RuntimeError(f"resumed at {job.resumed}, but {told} was told before")
                    job.compare(expected[1])
                    if code == 0:
                        if job.final != [expected[0]]:
                            raise RuntimeError(f"last lines {job.final} instead of {expected[0]}")
                        return done, slowest
                    # Who is hit before main() cannot say that it has nothing to lose.
                    if code == 77 and job.lines == 0:
                        continue
                    if code != 75:
                        raise RuntimeError(f"stopped ({kind}), it exits with {code}")
                    # A step that only the killed one had applied may be made anew.
                    told = max(told, job.told - (1 if killed else 0))
                    done += 1
            except Exception:
                print(f"stop {done} of a chain, {kind}, every {every}", file=sys.stderr)
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    global ARGS
    parser = soak_job.parser(__doc__)
    parser.add_argument("--stops", type=int, default=300, help="in all")
    parser.add_argument("--stops-a-chain", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    ARGS = parser.parse_args()
    rng = random.Random(ARGS.seed)
    print(f"seed {ARGS.seed}", flush=True)
    quiet_runs = soak_job.QuietRuns(ARGS)
    stops, number = 0, 0
    while stops < ARGS.stops:
        model = ARGS.models[number % len(ARGS.models)]
        expected = quiet_runs.expected(model)
        stops_here = min(ARGS.stops_a_chain, ARGS.stops - stops)
        now, slowest = chain(quiet_runs.options(model), expected, stops_here, rng)
        stops, number = stops + now, number + 1
        print(f"{model}: {now} stops, the same last line, the slowest took {slowest:.2f} s; "
              f"{stops} of {ARGS.stops}", flush=True)
    print(f"all {stops} stops in {number} jobs left the same bits", flush=True)


if __name__ == "__main__":
    main()
