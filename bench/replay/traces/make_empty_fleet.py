#!/usr/bin/env python3
"""Prints a made up trace: a few machines that come and go by themselves; often none is there.

Promises   the same options give the same trace. Each machine is there, and away, for times that are
           drawn from exponential distributions.
Does not   stand for any real fleet: it is the worst case of jobs that nobody's machine keeps.
"""
import argparse
import random


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--here", type=float, default=8, metavar="MINUTES", help="on average (8)")
    parser.add_argument("--away", type=float, default=12, metavar="MINUTES", help="on average (12)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng, events, end = random.Random(args.seed), [], args.hours * 3600
    for machine in range(args.machines):
        at, turn = 0.0, 0
        while True:
            minutes = args.away if turn % 2 == 0 else args.here
            at += 60 * rng.expovariate(1 / minutes)
            if at >= end:
                break
            what = "remove" if turn % 2 else "add"
            events.append((round(1000 * at), what, f"m{machine}n{turn // 2}"))
            turn += 1
    for at, what, name in sorted(events):
        print(f"{at},{what},{name}")


if __name__ == "__main__":
    main()
