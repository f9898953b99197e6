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
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HANG_LIMIT = 120
LINE = re.compile(r"^step (\d+) rank (\d+) of (\d+) pid (\d+) (loss .* lanes .*)$")
RESUMED = re.compile(r"^resumed step=(\d+) ")
ARGS = None


class Job:
    """A training job under keelrun, and what its workers say."""

    def __init__(self, workers, options):
        self.workers = workers
        self.told = 0        # the highest step
        self.losses = {}     # of each step, as first told
        self.pids = {}       # of each rank, the newest
        self.resumed = None
        self.lines = 0
        self.final = []
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)
        command = [ARGS.keelrun, "--standalone", f"--nproc-per-node={workers}",
                   "--max-restarts=1000", "--no-python", ARGS.program, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            step, resumed = LINE.search(line), RESUMED.search(line)
            if step:
                self.told = max(self.told, int(step[1]))
                self.pids[int(step[2])] = int(step[4])
                if self.losses.setdefault(int(step[1]), step[5]) != step[5]:
                    self.final.append("differs within the job: " + line.strip())
            elif resumed:
                self.resumed = int(resumed[1])
            elif "final step=" in line:
                self.final.append(line[line.index("final step="):].strip())
            self.lines += 1

    def wait_for_lines(self, count):
        wanted, end = self.lines + count, time.monotonic() + HANG_LIMIT
        while self.lines < wanted and self.process.poll() is None:
            if time.monotonic() > end:
                raise RuntimeError("the job stands still")
            time.sleep(0.001)

    def end(self):
        code = self.process.wait(timeout=HANG_LIMIT)
        self.reader.join()
        return code

    def show(self):
        self.log.flush()
        self.log.seek(0)
        sys.stderr.write(self.log.read()[-20000:])

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.log.close()
        os.unlink(self.log.name)


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass   # it has ended


def stop(job, rng):
    """One way to stop; whether a worker was killed beside it, and how long it took."""
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
    send(job.process.pid, rng.choice([signal.SIGTERM, signal.SIGINT]))
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
            job = Job(rng.choice(ARGS.workers), options + [
                "--checkpoint-dir", folder, "--save-every", str(every), "--pause", pause])
            kind = "none"
            try:
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
                for step, text in job.losses.items():
                    if text != expected[1][step]:
                        raise RuntimeError(f"step {step}: {text} instead of {expected[1][step]}")
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
                job.process.kill()
                job.show()
                raise
            finally:
                job.destroy()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def quiet(options):
    job = Job(1, options)
    try:
        if job.end() != 0 or len(job.final) != 1:
            raise RuntimeError(f"the quiet run ended with {job.final}")
        return job.final[0], job.losses
    finally:
        job.destroy()


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--stops", type=int, default=300, help="in all")
    parser.add_argument("--stops-a-chain", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--models", nargs="+", default=["mlp", "resnet", "gpt"])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    ARGS = parser.parse_args()
    rng = random.Random(ARGS.seed)
    print(f"seed {ARGS.seed}", flush=True)
    stops, number, quiet_runs = 0, 0, {}
    while stops < ARGS.stops:
        model = ARGS.models[number % len(ARGS.models)]
        options = ["--steps", str(ARGS.steps), "--lanes", "4", "--model", model]
        if model not in quiet_runs:
            quiet_runs[model] = quiet(options)
        stops_here = min(ARGS.stops_a_chain, ARGS.stops - stops)
        now, slowest = chain(options, quiet_runs[model], stops_here, rng)
        stops, number = stops + now, number + 1
        print(f"{model}: {now} stops, the same last line, the slowest took {slowest:.2f} s; "
              f"{stops} of {ARGS.stops}", flush=True)
    print(f"all {stops} stops in {number} jobs left the same bits", flush=True)


if __name__ == "__main__":
    main()
