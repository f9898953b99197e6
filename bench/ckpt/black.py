#!/usr/bin/env python3
"""What a store that goes black for a minute costs the training: one job that saves in a bucket.

The store (s3_sink) is stopped with SIGSTOP when the job says that a save begins, as a network that
carries nothing any more, and goes on after --black seconds. Prints the steps' times before, while
and after it was black, what the job told of its saves, and whether its last line is that of the
same job without a bucket.
"""
import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time

from buckets import Sink, environment

RUN_LIMIT_S = 600
JOB = ["--model", "gpt", "--log-every", "1"]


class Job:
    def __init__(self, program, steps, folder, env, more=()):
        self.name = f"{folder}/{'saving' if more else 'alone'}"
        self.log = self.name + ".jsonl"
        with open(self.name, "w", encoding="utf-8") as said:
            self.process = subprocess.Popen(
                [program, *JOB, "--steps", str(steps), "--log-jsonl", self.log, *more],
                stdout=said, stderr=subprocess.STDOUT, env=env)

    def said(self):
        with open(self.name, encoding="utf-8") as file:
            return file.read()

    def wait_for(self, is_so):
        until = time.monotonic() + RUN_LIMIT_S
        while not is_so():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the job ended or hangs: {self.said()[-2000:]}")
            time.sleep(0.002)

    def end(self):
        self.process.wait(timeout=RUN_LIMIT_S)
        said = self.said()
        final, = re.findall(r"^final (.*)$", said, re.M)
        return final, said

    def steps(self):
        """When each step ended, and how long it took, in seconds."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [(line["wall_ns"] / 1e9, sum(line["ms"].values()) / 1e3) for line in lines
                if line.get("event") == "step"]


def of(times):
    if not times:
        return "no step"
    ordered = sorted(times)
    return (f"{len(times)} steps, median {1e3 * statistics.median(ordered):.1f} ms, "
            f"p99 {1e3 * ordered[int(0.99 * (len(ordered) - 1))]:.1f} ms, "
            f"worst {1e3 * ordered[-1]:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="build/bin")
    parser.add_argument("--black", type=float, default=60, help="seconds")
    parser.add_argument("--steps", type=int, default=14000)
    parser.add_argument("--save-every", type=int, default=5000)
    args = parser.parse_args()
    program = f"{args.bin}/model_train"
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.closing(Sink(f"{args.bin}/s3_sink", 0)) as sink:
        env = environment(sink)
        job = Job(program, args.steps, folder, env, [
            "--checkpoint-dir", "s3://bench/black", "--save-every", str(args.save_every)])
        try:
            job.wait_for(lambda: "step 100 " in job.said())   # the job's own beginning is over
            began = time.time()
            job.wait_for(lambda: "save-begins" in job.said())
        except BaseException:
            job.process.kill()
            raise
        sink.process.send_signal(signal.SIGSTOP)
        stopped = time.time()
        time.sleep(args.black)
        sink.process.send_signal(signal.SIGCONT)
        ended = time.time()
        final, said = job.end()
        steps = job.steps()
        before = [took for at, took in steps if began < at < stopped]
        black = [took for at, took in steps if stopped < at < ended]
        after = [took for at, took in steps if at > ended]
        print(f"before:           {of(before)}\nwhile it was black: {of(black)}\n"
              f"after:            {of(after)}")
        for line in said.splitlines():
            if re.search(r"save|commit|store", line) and " step " not in line:
                print(line)
        alone, _ = Job(program, args.steps, folder, env).end()
        print(f"{len(steps)} steps logged; the last line is "
              f"{'that' if alone == final else 'NOT that'} of the job without a bucket")


if __name__ == "__main__":
    main()
