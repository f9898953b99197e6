#!/usr/bin/env python3
"""Measures the trainer: steps beside Python's DDP, and what a kill -9 costs; one JSON line each.

Promises   systems that are compared take turns, so that all meet the same machine. Every worker has
           one thread.
Does not   retry: a job that fails ends the measurement, in throughput only its own.
"""
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

from common import SIZES, keelrun, parser, put

HERE = os.path.dirname(os.path.abspath(__file__))
SPEED = re.compile(r"median_step_s=(\S+) parameters=(\d+)")
STEP = re.compile(r"step (\d+) rank (\d+) of (\d+) pid (\d+)")
JOB_LIMIT_S = 900
ARGS = None


# --- Steps ---

def systems(size):
    options = [*SIZES[size], "--steps", str(ARGS.steps)]
    ours = ["--no-python", f"{ARGS.bin}/gpt_bench", *options]
    peer = [f"{HERE}/ddp_peer.py", *options]
    # A spare imports PyTorch just while the few steps of a round are made; once in a job.
    script = ["--spares=0", f"{HERE}/python_peer.py", *options]
    return {"exact": ours, "exact, native numerics": [*ours, "--numerics=native"],
            "all-reduce": [*ours, "--reduce=allreduce"],
            "Python, the engine's AdamW": [*script, "--optimizer=engine"],
            "Python, fused AdamW": [*script, "--optimizer=fused"],
            "Python, default AdamW": [*script, "--optimizer=default"],
            "DDP, fused AdamW": [*peer, "--fused"], "DDP, default AdamW": peer}


def one_job(command, path):
    try:
        done = subprocess.run(keelrun(ARGS.bin, 2, *command), stdout=subprocess.PIPE, text=True,
                              check=False, timeout=JOB_LIMIT_S,
                              env={**os.environ, "PATH": path,
                                   "PYTHONPATH": os.path.join(ARGS.bin, "..", "python")})
    except subprocess.TimeoutExpired:
        return {"seconds": None, "error": f"not done after {JOB_LIMIT_S} s"}
    found = SPEED.search(done.stdout)
    if done.returncode or not found:
        return {"seconds": None, "error": f"the job ended with {done.returncode}"}
    return {"seconds": float(found[1]), "parameters": int(found[2])}


def throughput():
    path = os.path.dirname(ARGS.python) + os.pathsep + os.environ["PATH"]
    for size in ARGS.sizes:
        jobs = list(systems(size).items())
        for turn in range(ARGS.rounds):
            # Each begins a round in its turn: who comes next to a peer may be the slower for it.
            first = turn % len(jobs)
            for system, command in jobs[first:] + jobs[:first]:
                put(what="step", size=size, system=system, round=turn, **one_job(command, path))


# --- Kills ---

class Job:
    """A job of model_train, with the times at which each worker told each step."""

    def __init__(self, workers):
        self.told = []      # (time, step, pid)
        options = ["--no-python", f"{ARGS.bin}/model_train", "--steps", "1000000", "--lanes", "6",
                   "--model", ARGS.model, "--pause", f"{ARGS.step_ms}ms"]
        self.process = subprocess.Popen(
            keelrun(ARGS.bin, workers, "--max-restarts=1000000", *options),
            stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            found = STEP.search(line)
            if found:
                self.told.append((time.monotonic(), int(found[1]), int(found[4]), int(found[3])))

    def await_world(self, world, without=None, limit=60):
        """The pids of an epoch of that size, once all of them made 8 steps in it."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            lately = self.told[-8 * world:]
            pids = {pid for _, _, pid, size in lately if size == world}
            if len(lately) == 8 * world and len(pids) == world and without not in pids and \
                    all(size == world for *_, size in lately):
                return sorted(pids)
            time.sleep(0.002)
        raise SystemExit("the job is not whole again")

    def await_settled(self, pids):
        """Who dies sooner than a second after its start may have to wait for its next one."""
        begun = max(self.of(pid)[0] for pid in pids)
        time.sleep(max(0, begun + 1 - time.monotonic()))

    def of(self, pid):
        return [at for at, _, who, _ in self.told if who == pid]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def __enter__(self):
        return self


def gap(times, at):
    """From the last telling before `at` to the first one after."""
    before = [one for one in times if one <= at]
    after = [one for one in times if one > at]
    return after[0] - before[-1] if before and after else None


def kills():
    rng = random.Random(1)
    with Job(3) as job:
        for _ in range(ARGS.kills):
            pids = job.await_world(3)
            job.await_settled(pids)
            times = job.of(pids[0])[-20:]
            step = statistics.median(b - a for a, b in zip(times, times[1:]))
            victim = rng.choice(pids)
            time.sleep(rng.uniform(0, 2 * step))
            at = time.monotonic()
            os.kill(victim, 9)
            survivors = [pid for pid in pids if pid != victim]
            whole = job.await_world(3, without=victim)
            newcomer = next((pid for pid in whole if pid not in pids), None)
            joined = job.of(newcomer)[0]
            for pid in survivors:
                stall = gap(job.of(pid), at)
                # The newcomer's first step is the survivors' first with it; the one before is not.
                wait = gap(job.of(pid), joined - step / 2)
                put(what="stall", step=step, seconds=stall and stall - step)
                put(what="join wait", step=step, seconds=wait and wait - step)
            put(what="back", step=step, seconds=joined - at)


# --- Groups ---

def groups():
    for workers in ARGS.workers:
        sys.stdout.flush()
        # Tensors only between few: the machine has not the memory for 32 of them.
        transfers = 3 if workers <= 4 else 0
        done = subprocess.run(
            keelrun(ARGS.bin, workers, "--no-python", f"{ARGS.bin}/group_bench",
                    f"--votes={ARGS.votes}", f"--transfers={transfers}"),
            stdout=subprocess.PIPE, text=True, check=True)
        print(done.stdout, end="")


SCENARIOS = {"throughput": throughput, "kills": kills, "groups": groups}


def main():
    global ARGS
    options = parser(__doc__, SCENARIOS)
    options.add_argument("--steps", type=int, default=23)
    options.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    options.add_argument("--votes", type=int, default=100, help="in each of ten groups")
    options.add_argument("--model", default="mlp", help="of tests/trainer/model_train.cc")
    options.add_argument("--step-ms", type=int, default=10, help="pause after each step")
    ARGS = options.parse_args()
    for name in ARGS.scenario or SCENARIOS:
        SCENARIOS[name]()


if __name__ == "__main__":
    sys.exit(main())
