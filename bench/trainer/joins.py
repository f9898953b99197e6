#!/usr/bin/env python3
"""A third host joins two that train a GPT, over links that are shaped: network namespaces.

Promises   one JSON line a run: {"what":"join","way":W,"rate":R,"step_s":S,
           "after_step_s":A,"waited_s":T,"longest_s":L,"member_after_s":M,"steps":N}. `way` is
           beside or wait (--joins); ways take turns. `step_s` and `after_step_s` are median steps
           of two hosts before the join and of three after it. From the step before the new
           membership until the newcomer computes: `waited_s` is by how much all these steps were
           longer than the longer of these two, `longest_s` by how much the longest one was,
           `member_after_s` the time and `steps` the steps that it took.
Does not   shape anything outside its namespaces. All hosts share the machine's processors.
"""
import argparse
import json
import os
import re
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/net"))
from hosts import Lan, keelrun_words, why_not  # noqa: E402
from links import shape  # noqa: E402

LIMIT_S = 600
STEP = re.compile(r"(?:^|\s)step (\d+) loss|step=(\d+) .*loss=")
JOINED = re.compile(r"state-agreed .*workers=3")
CAUGHT_UP = re.compile(r" caught-up ")
BEFORE, AFTER = 12, 8   # steps


class Clock:
    """When each line of a launcher came."""

    def __init__(self, launcher):
        self.launcher, self.times = launcher, []
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            with self.launcher.changed:
                self.launcher.changed.wait_for(
                    lambda: len(self.launcher.lines) > len(self.times), 1)
                now = time.monotonic()
                self.times += [now] * (len(self.launcher.lines) - len(self.times))

    def first(self, pattern, after=0.0):
        for line, at in zip(self.launcher.lines, self.times):
            if at >= after and pattern.search(line):
                return at
        return None

    def steps(self):
        return [at for line, at in zip(self.launcher.lines, self.times) if STEP.search(line)]

    def wait(self, condition):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(self.launcher.text())
            time.sleep(0.01)


def measure(args, way):
    with Lan(3) as lan:
        if args.rate:
            shape(lan, args.rate)
        program = [f"{args.bin}/gpt_bench", "--steps=100000", f"--lanes={args.lanes}",
                   f"--lane-batch={args.lane_batch}", f"--width={args.width}",
                   f"--layers={args.layers}", "--read-memory-from=0", "--log-every=1",
                   f"--joins={way}", *args.more]

        def start(number):
            command = keelrun_words(lan, number, f"{args.bin}/keelrun", nnodes="2:3", workers=1,
                                    job="joins")
            return lan.start(number, [*command, *program])

        clocks = [Clock(start(number)) for number in range(2)]

        def told(pattern):
            found = [at for clock in clocks if (at := clock.first(pattern)) is not None]
            return min(found, default=None)

        def steps():
            return max((clock.steps() for clock in clocks), key=len)

        clocks[0].wait(lambda: len(steps()) >= BEFORE)
        before = steps()[3:]
        step_s = statistics.median(b - a for a, b in zip(before, before[1:]))
        start(2)
        clocks[0].wait(lambda: told(JOINED) is not None)
        joined = told(JOINED)
        if way == "beside":
            clocks[0].wait(lambda: told(CAUGHT_UP) is not None)
            member = told(CAUGHT_UP)
        else:
            clocks[0].wait(lambda: steps()[-1] > joined)
            member = next(at for at in steps() if at > joined)
        clocks[0].wait(lambda: sum(at > member for at in steps()) >= AFTER)
        all_steps = steps()
        last_before = max(at for at in all_steps if at <= joined)
        lengths = [b - a for a, b in zip(all_steps, all_steps[1:]) if last_before <= a < member]
        for launcher in lan.launchers:
            launcher.process.terminate()
            launcher.end(LIMIT_S)
        after = [at for at in all_steps if at >= member][1:]
        after_s = statistics.median(b - a for a, b in zip(after, after[1:]))
        usual = max(step_s, after_s)
        return {"what": "join", "way": way, "rate": args.rate, "step_s": step_s,
                "after_step_s": after_s, "waited_s": sum(lengths) - usual * len(lengths),
                "longest_s": max(lengths) - usual, "member_after_s": member - joined,
                "steps": len(lengths)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder of keelrun and gpt_bench")
    parser.add_argument("--rate", default="1gbit", help="of each link, as tc takes it; empty: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lanes", type=int, default=6)
    parser.add_argument("--lane-batch", type=int, default=2)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--layers", type=int, default=7)
    parser.add_argument("more", nargs="*", help="further options of the program, after --")
    args = parser.parse_args()
    if reason := why_not():
        raise SystemExit(f"joins.py: {reason}")
    for _ in range(args.rounds):
        for way in ("wait", "beside"):
            print(json.dumps(measure(args, way)), flush=True)


if __name__ == "__main__":
    main()
