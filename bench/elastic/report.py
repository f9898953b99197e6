#!/usr/bin/env python3
"""Prints what measure.py wrote as Markdown tables, or as JSON: `report.py [--json] FILE.jsonl...`

Promises   each goal stands beside what came, ratios of one run included.
Does not   judge: what is missed is for the reader to see.
"""
import argparse
import json

import roles
from jobs import quantile

GOALS = {
    ("launch", "keelrun"): "0.35 s, and 1/8 of torchrun's",
    ("in-place kill", "keelrun"): "median 0.015 s, p99 0.060 s",
    ("foreign kill", "keelrun"): "0.15 s; all recover",
    ("lost host", "keelrun"): "3 s",
    ("supervisor killed", "keelrun"): "0.1 s",
    ("supervisor back", "keelrun"): "20 of 20",
    ("epoch of 1000 hosts", "keelrun"): "1 s",
    ("coordinator leaves", "keelrun"): "median 0.1 s, worst 0.5 s",
    ("coordinator killed", "keelrun"): "median 0.3 s, worst 1 s",
    **{(f"coordinator cut off, {whom}", "keelrun"): "median 4 s, worst 5.5 s"
       for whom in ("first", "heir", "heir, it holds the checkpoints")},
    **{(f"coordinator cut off, {whom}: link up, it follows", "keelrun"): "3 s"
       for whom in ("first", "heir", "heir, it holds the checkpoints")},
    **{(f"comes: {how}{words}", "keelrun"): "3 s"
       for how in roles.COMING for words in ("", ": first step with it")},
    **{(f"etcd: {whom} killed, between two writes of a host", "keelrun"): "3 s"
       for whom in ("member", "leader")},
    ("etcd: coordinator killed", "keelrun"): "0.5 s",
    ("etcd: coordinator silent", "keelrun"): "4.5 s",
    ("etcd: coordinator silent, it holds the checkpoints", "keelrun"): "4.5 s",
    ("takeover of 1000 hosts", "keelrun"): "2 s",
}


def print_table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def seconds_of(rows, scenario, system="keelrun"):
    return [row["seconds"] for row in rows.get((scenario, system), [])
            if row["seconds"] is not None]


def times(rows):
    for key, every in rows.items():
        good = seconds_of(rows, *key)
        numbers = [f"{quantile(good, share):.3f}" if good else "-" for share in (0.5, 0.99, 1)]
        yield [*key, f"{len(good)}/{len(every)}", *numbers, GOALS.get(key, "")]


def median(values):
    return quantile(values, 0.5)


def ratios(rows):
    """Ours to torchrun's, and many hosts to few: medians of the same run."""
    for scenario, goal in (("launch", "1/8"), ("foreign kill", ""), ("group kill", "")):
        ours, theirs = (seconds_of(rows, scenario, system) for system in ("keelrun", "torchrun"))
        if ours and theirs:
            times_less = median(theirs) / median(ours)
            yield [f"{scenario}, keelrun to torchrun", f"1/{times_less:.1f}", goal]
    for what, scenario, figure in (("", "epoch", "cpu_of_a_host"),
                                   (" for a takeover", "takeover", "cpu_of_a_host"),
                                   (" a second of training", "takeover", "cpu_of_a_host_a_second")):
        cpu = [[row[figure] for row in rows.get((f"{scenario} of {hosts} hosts", "keelrun"), [])
                if row["seconds"]] for hosts in (100, 1000)]
        if all(cpu):
            few, many = map(median, cpu)
            yield [f"processor time of a host{what}, 1000 hosts to 100",
                   f"{many / few:.2f} ({1000 * many:.1f} ms to {1000 * few:.1f} ms)", "1.5"]


def summary(rows):
    """For programs: what, how often it came of how often, and how long it took."""
    for (scenario, system), every in rows.items():
        good = seconds_of(rows, scenario, system)
        yield {"scenario": scenario, "system": system, "came": len(good), "of": len(every),
               **({"median_s": median(good), "worst_s": max(good)} if good else {}),
               "to_reach": GOALS.get((scenario, system))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    parser.add_argument("files", nargs="+", metavar="FILE.jsonl")
    args = parser.parse_args()
    rows = {}
    for path in args.files:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                rows.setdefault((row["scenario"], row["system"]), []).append(row)
    if args.json:
        print(json.dumps(list(summary(rows)), indent=1))
        return
    print_table(["what", "system", "came", "median s", "p99 s", "worst s", "to reach"], times(rows))
    print_table(["ratio of medians", "came", "to reach"], ratios(rows))


if __name__ == "__main__":
    main()
