#!/usr/bin/env python3
"""Prints what measure.py wrote as Markdown: `report.py FILE.jsonl`."""
import json
import statistics
import sys

QUIET_MIN = 4   # steps that tell how long one takes


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def steps(rows):
    print("| size | system | median step s | samples/s against exact (median of rounds) |")
    print("|---|---|---|---|")
    by = {}
    for row in rows:
        if row["seconds"] is None:
            print(f"{row['size']}, {row['system']}: {row['error']}", file=sys.stderr)
        else:
            by.setdefault((row["size"], row["system"]), {})[row["round"]] = row["seconds"]
    for (size, system), rounds in by.items():
        exact = by.get((size, "exact"), {})
        ratios = [exact[turn] / seconds for turn, seconds in rounds.items() if turn in exact]
        if not ratios:
            continue
        print(f"| {size} | {system} | {statistics.median(rounds.values()):.4f} | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) |")


def kills(rows):
    print("| what | times | median ms | p99 ms | worst ms |")
    print("|---|---|---|---|---|")
    for what in ("stall", "join wait", "back"):
        values = [1e3 * row["seconds"] for row in rows
                  if row["what"] == what and row["seconds"] is not None]
        if values:
            print(f"| {what} | {len(values)} | {statistics.median(values):.1f} | "
                  f"{quantile(values, 0.99):.1f} | {max(values):.1f} |")


def groups(rows):
    by = {}
    for row in rows:
        by.setdefault(row["workers"], {}).setdefault(row["what"], []).append(1e3 * row["seconds"])
    names = ["vote", "gloo barrier", "build", "agree", "transfer", "gloo broadcast"]
    print("| workers | " + " | ".join(f"{name}, ms" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for workers, of in sorted(by.items()):
        print(f"| {workers} | " + " | ".join(
            f"{statistics.median(of[name]):.3f}" if name in of else "" for name in names) + " |")


def recovery(rows):
    print("| system | recovered | stall s: median (worst) | back s: median (worst) |")
    print("|---|---|---|---|")
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        cells = []
        for what in ("stall", "back"):
            values = [row[what] for row in own if row.get(what) is not None]
            cells.append(f"{statistics.median(values):.3f} ({max(values):.3f})" if values else "")
        came = sum(row.get("back") is not None for row in own)
        print(f"| {system} | {came}/{len(own)} | {cells[0]} | {cells[1]} |")


def save(rows):
    rounds = {}
    for row in rows:
        rounds.setdefault(row["round"], {})[row["saving"]] = row
    cost = [of[True]["seconds"] / of[False]["seconds"] - 1 for of in rounds.values()]
    worst = [of[True]["worst"] / of[True]["median"] - 1 for of in rounds.values()]
    quiet = [of[False]["worst"] / of[False]["median"] - 1 for of in rounds.values()]
    print("| rounds | a background save every 20 steps costs | worst step beyond the median | "
          "the same without saves |")
    print("|---|---|---|---|")
    print(f"| {len(rounds)} | {spread(cost)} | {spread(worst)} | {spread(quiet)} |")


def window(rows):
    """Against the steps of the same 20 that were begun after the save was committed: so what the
    machine does by the minute weighs on both. Without saves the second half stands for them."""
    print("| saves | busy steps after each | all 20 steps against the quiet ones of the same 20 | "
          "worst step against their median |")
    print("|---|---|---|---|")
    for saving in (True, False):
        own = [row for row in rows if row["saving"] == saving and sum(row["quiet"]) >= QUIET_MIN]
        costs, worst, busy = [], [], []
        for row in own:
            quiet = [took for took, is_quiet in zip(row["seconds"], row["quiet"]) if is_quiet]
            costs.append(statistics.mean(row["seconds"]) / statistics.mean(quiet) - 1)
            worst.append(max(row["seconds"]) / statistics.median(quiet) - 1)
            busy.append(len(row["seconds"]) - len(quiet))
        error = statistics.stdev(costs) / len(costs) ** 0.5
        print(f"| {len(own) if saving else 'none'} | {statistics.median(busy) if saving else ''} | "
              f"{100 * statistics.mean(costs):.1f} % ± {100 * error:.1f} | {spread(worst)} |")
        never = sum(row["saving"] == saving for row in rows) - len(own)
        if never:
            print(f"{never} saves took too long to compare with", file=sys.stderr)


def spread(shares):
    return (f"{100 * statistics.median(shares):.1f} % "
            f"({100 * min(shares):.1f} to {100 * max(shares):.1f})")


def stop(rows):
    print("| SIGTERM to exit, s: median (worst) | a step, s | write and fsync of the state, s | "
          "against step + 1.3 x write + 0.1 s |")
    print("|---|---|---|---|")
    took = [row["seconds"] for row in rows]
    against = [row["seconds"] / (row["step"] + 1.3 * row["write"] + 0.1) for row in rows]
    print(f"| {statistics.median(took):.2f} ({max(took):.2f}) | "
          f"{statistics.median(row['step'] for row in rows):.2f} | "
          f"{statistics.median(row['write'] for row in rows):.2f} | "
          f"{statistics.median(against):.2f} ({max(against):.2f}) |")


def resume(rows):
    print("| system | command to the first new step, s: median (worst) |")
    print("|---|---|")
    for system in dict.fromkeys(row["system"] for row in rows):
        took = [row["seconds"] for row in rows if row["system"] == system]
        print(f"| {system} | {statistics.median(took):.2f} ({max(took):.2f}) |")


def loader(rows):
    print("| model | waiting for data, of a step |")
    print("|---|---|")
    for row in rows:
        print(f"| {row['model']} | {100 * row['seconds'] / row['of']:.2f} % |")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if any(row["what"] == "step" for row in rows):
        steps([row for row in rows if row["what"] == "step"])
    if any(row["what"] == "stall" for row in rows):
        kills(rows)
    for report in (save, window, stop, resume, loader):
        own = [row for row in rows if row["what"] == report.__name__]
        if own:
            report(own)
    if any(row["what"] == "recovery" for row in rows):
        recovery([row for row in rows if row["what"] == "recovery"])
    if any("workers" in row for row in rows):
        groups([row for row in rows if "workers" in row])


if __name__ == "__main__":
    main()
