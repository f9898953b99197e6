#!/usr/bin/env python3
"""Prints the Markdown tables of what measure.py wrote: `report.py FILE.jsonl`.

Promises   each goal stands beside what came, ratios of one run included.
Does not   judge: what is missed is for the reader to see.
"""
import json
import sys

from jobs import quantile

GOALS = {
    ("launch", "keelrun"): "0.35 s, and 1/8 of torchrun's",
    ("in-place kill", "keelrun"): "median 0.015 s, p99 0.060 s",
    ("foreign kill", "keelrun"): "0.15 s; all recover",
    ("lost host", "keelrun"): "3 s",
    ("supervisor killed", "keelrun"): "0.1 s",
    ("supervisor back", "keelrun"): "20 of 20",
    ("epoch of 1000 hosts", "keelrun"): "1 s",
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
    names = ("epoch of 100 hosts", "epoch of 1000 hosts")
    cpu = [[row["cpu_of_a_host"] for row in rows.get((name, "keelrun"), []) if row["seconds"]]
           for name in names]
    if all(cpu):
        few, many = map(median, cpu)
        yield ["processor time of a host, 1000 hosts to 100",
               f"{many / few:.2f} ({1000 * many:.1f} ms to {1000 * few:.1f} ms)", "1.5"]


def main():
    rows = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            rows.setdefault((row["scenario"], row["system"]), []).append(row)
    print_table(["what", "system", "came", "median s", "p99 s", "worst s", "to reach"], times(rows))
    print_table(["ratio of medians", "came", "to reach"], ratios(rows))


if __name__ == "__main__":
    main()
