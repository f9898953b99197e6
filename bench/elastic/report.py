#!/usr/bin/env python3
"""Prints the Markdown table of what measure.py wrote: `report.py FILE.jsonl`."""
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


def main():
    rows = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            rows.setdefault((row["scenario"], row["system"]), []).append(row["seconds"])
    print("| what | system | came | median s | p99 s | worst s | to reach |")
    print("|---|---|---|---|---|---|---|")
    for key, values in rows.items():
        good = [value for value in values if value is not None]
        numbers = [f"{quantile(good, share):.3f}" if good else "-" for share in (0.5, 0.99, 1)]
        print("|", " | ".join([*key, f"{len(good)}/{len(values)}", *numbers, GOALS.get(key, "")]),
              "|")


if __name__ == "__main__":
    main()
