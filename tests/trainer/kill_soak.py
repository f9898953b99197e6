#!/usr/bin/env python3
"""Kills workers of training jobs at random and compares their last lines with a quiet run's.

Promises   the jobs lose --kills workers: single ones, pairs, some stopped (SIGSTOP) a moment
           before, some while the next group is being built, some newcomers that have made no
           step yet; the same seed draws the same kinds and pauses. A job that ends with another
           line, that tells of a step with other losses than the quiet run, that ends with another
           exit code, or that stands still for longer than the hang limit is a failure.
Does not   care which worker is hit at which moment: that is the scheduler's.
"""
import argparse
import glob
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HANG_LIMIT = 120
LINE = re.compile(r"^step (\d+) rank (\d+) of (\d+) pid (\d+) (loss .* lanes .*)$")
ARGS = None


class Job:
    """A training job under keelrun, and what its workers say."""

    def __init__(self, workers, options):
        self.spoke = set()   # pids
        self.losses = {}     # of each step, as first told
        self.differing = []  # steps that were told with others
        self.lines = 0
        self.final = []
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)
        command = [ARGS.keelrun, "--standalone", f"--nproc-per-node={workers}",
                   "--max-restarts=1000000", "--no-python", ARGS.program, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            found = LINE.search(line)
            if found:
                self.spoke.add(int(found[4]))
                if self.losses.setdefault(int(found[1]), found[5]) != found[5]:
                    self.differing.append(line.strip())
            elif "final step=" in line:
                self.final.append(line[line.index("final step="):].strip())
            self.lines += 1

    def wait_for_lines(self, count):
        """Until so many more lines came; False when the job has ended."""
        wanted, end = self.lines + count, time.monotonic() + HANG_LIMIT
        while self.lines < wanted:
            if self.process.poll() is not None:
                return False
            if time.monotonic() > end:
                raise RuntimeError("the job stands still")
            time.sleep(0.001)
        return True

    def victims(self, newcomers):
        """All workers, or those that have made no step yet."""
        found, parents = [], [self.process.pid]
        while parents:
            children = children_of(parents.pop())
            parents += children
            found += [pid for pid in children if is_worker(pid)]
        return [pid for pid in found if not (newcomers and pid in self.spoke)]

    def end(self):
        """The last line, once the job has ended by itself."""
        code = self.process.wait(timeout=HANG_LIMIT)
        self.reader.join()
        lines = sorted(set(self.final))
        if code != 0 or len(lines) != 1:
            raise RuntimeError(f"the job ended with {code} and the last lines {lines}")
        if self.differing:
            raise RuntimeError(f"steps told with different losses: {self.differing[:5]}")
        return lines[0], self.losses

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.log.close()
        os.unlink(self.log.name)


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


def shoot(job, rng, left):
    """One volley; how many died. None when the job has ended."""
    kind = rng.choice(["single", "single", "double", "stopped", "forming", "newcomer"])
    if not job.wait_for_lines(rng.randrange(1, 10)):
        return None
    time.sleep(rng.uniform(0, 0.02))
    died = 0
    for shot in range(2 if kind in ("double", "forming") and left > 1 else 1):
        if kind == "forming" and shot == 1:
            time.sleep(rng.uniform(0, 0.02))   # the next group is being built
        victims = job.victims(kind == "newcomer")
        if victims:
            died += kill(rng.choice(victims), kind == "stopped", rng.uniform(0, 0.02))
    return died


def survive(workers, kills, rng, options, expected):
    """How many died before the job ended; raises where it is not as `expected`: line and losses."""
    # So many steps that the job outlives its kills; only the quiet run's count is compared.
    job = Job(workers, options)
    try:
        died = 0
        while died < kills:
            more = shoot(job, rng, kills - died)
            if more is None:
                break
            died += more
        line, losses = job.end()
        if line != expected[0]:
            raise RuntimeError(f"bits differ: {line} instead of {expected[0]}")
        for step, text in losses.items():
            if text != expected[1][step]:
                raise RuntimeError(f"step {step}: {text} instead of {expected[1][step]}")
        return died
    except Exception:
        job.process.kill()
        job.log.flush()
        job.log.seek(0)
        sys.stderr.write(job.log.read()[-20000:])
        raise
    finally:
        job.destroy()


def quiet(options):
    job = Job(1, options)
    try:
        return job.end()
    finally:
        job.destroy()


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--kills", type=int, default=300, help="in all")
    parser.add_argument("--kills-a-job", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--models", nargs="+", default=["mlp", "resnet", "gpt"])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    ARGS = parser.parse_args()
    ARGS.name = os.path.basename(ARGS.program)
    rng = random.Random(ARGS.seed)
    print(f"seed {ARGS.seed}", flush=True)
    died, job, quiet_runs = 0, 0, {}
    while died < ARGS.kills:
        model = ARGS.models[job % len(ARGS.models)]
        workers = ARGS.workers[job % len(ARGS.workers)]
        # With more than four workers some have no lanes.
        options = ["--steps", str(ARGS.steps), "--lanes", "4", "--model", model]
        if model not in quiet_runs:
            quiet_runs[model] = quiet(options)
        begun = time.monotonic()
        now = survive(workers, min(ARGS.kills_a_job, ARGS.kills - died), rng, options,
                      quiet_runs[model])
        died, job = died + now, job + 1
        print(f"{model} on {workers} workers: {now} kills, the same last line, "
              f"{time.monotonic() - begun:.1f} s; {died} of {ARGS.kills}", flush=True)
    print(f"all {died} kills in {job} jobs left the same bits", flush=True)


if __name__ == "__main__":
    main()
