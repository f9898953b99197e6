#!/usr/bin/env python3
"""Prints measure.py's results as tables, in Markdown: report.py ckpt.jsonl

A ratio is to the anchor of the same round; in brackets, the best run over the best anchor.
"""
import collections
import json
import statistics
import sys

ANCHORS = ["memcpy", "memcpy_fresh", "write_fsync", "write_direct", "read_cold", "zstd1"]


def spread(values):
    return "/".join(f"{v:.2f}" for v in (min(values), statistics.median(values), max(values)))


def table(heading, rows):
    print(f"\n| {' | '.join(heading)} |\n|{'---|' * len(heading)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


class Anchors:
    def __init__(self, runs):
        self.runs = runs
        self.bytes = runs[0]["bytes"]

    def seconds(self, name, rnd):
        return statistics.median(self.bytes / r[name] for r in self.runs if r["round"] == rnd)

    def best_seconds(self, name):
        return self.bytes / max(r[name] for r in self.runs)

    def ratio(self, runs, field, name):
        median = statistics.median(r[field] / self.seconds(name, r["round"]) for r in runs)
        return f"{median:.2f} ({min(r[field] for r in runs) / self.best_seconds(name):.2f})"

    def show(self):
        table(["anchor", "GB/s: min/median/max"],
              [[name, spread([r[name] / 1e9 for r in self.runs])] for name in ANCHORS])


def row_of(system, runs, anchors):
    good = [r for r in runs if "error" not in r]
    if not good:
        return [system, runs[0]["error"].strip().splitlines()[-1][:80]] + [""] * 9
    failed = len(runs) - len(good)
    wrong = "" if all(r["ok"] for r in good) else " WRONG DATA"
    median = lambda field: statistics.median(r[field] for r in good)  # noqa: E731
    stall = [r["call_s"] + r["slow_s"] for r in good]
    return [system, spread(stall), spread([r["durable_s"] for r in good]),
            anchors.ratio(good, "durable_s", "write_fsync"),
            anchors.ratio(good, "durable_s", "write_direct"), f"{median('cpu_s'):.2f}",
            f"{good[0]['bytes'] / anchors.bytes:.3f}", f"{max(0, median('peak_mb')):.0f}",
            spread([r["load_s"] for r in good]), anchors.ratio(good, "load_s", "read_cold"),
            f"{len(good)}{f' (+{failed} failed)' if failed else ''}{wrong}"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    anchors = Anchors([r for r in runs if r["system"] == "anchors" and "error" not in r])
    print(f"state: {anchors.bytes / 1e6:.0f} MB")
    anchors.show()
    by = collections.defaultdict(list)
    for run in runs:
        if run["system"] != "anchors":
            by[run["world"], run["system"]].append(run)
    for world in sorted({world for world, _ in by}):
        print(f"\nWorld size {world} (seconds: min/median/max)")
        table(["system", "trainer's stall", "durable", "durable / write+fsync",
               "durable / O_DIRECT", "CPU s", "bytes / raw", "memory + MB", "load cold",
               "load / cold read", "runs"],
              [row_of(system, by[key], anchors) for key in sorted(by) if key[0] == world
               for system in [key[1]]])


if __name__ == "__main__":
    main()
