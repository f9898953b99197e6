#!/usr/bin/env python3
"""Steps of a GPT on hosts whose links are slow: network namespaces, shaped both ways.

Promises   one JSON line a run: {"what":"links","way":W,"hosts":N,"lanes":L,"rate":R,
           "step_s":S,"sent_mb":B,"placement":P}. `way` is even, auto (--lane-placement) or
           allreduce (--reduce); ways take turns. `sent_mb` is what the busiest host sent in a step,
           counted at its network device. At the end the ratios to all-reduce of the same round.
Does not   shape anything outside its namespaces. All hosts share the machine's processors, so a
           lane that a host does not compute makes the others faster.
"""
import argparse
import json
import os
import re
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/net"))
from hosts import Lan, ip, keelrun_words, why_not  # noqa: E402

WAYS = {"even": ["--lane-placement=even"], "auto": ["--lane-placement=auto"],
        "allreduce": ["--reduce=allreduce"]}
SPEED = re.compile(r"steps=(\d+) median_step_s=([0-9.]+)")
MOVED = re.compile(r"lanes-moved .*reason=\"([0-9+]+) lanes")
RUN_LIMIT_S = 600


def shape(lan, rate):
    """Both directions of each host's link."""
    for number in range(len(lan.hosts)):
        for place, device in ((lan.hosts[number], "eth0"), (lan.switch, f"port{number}")):
            ip_tc(place, device, rate)


def ip_tc(place, device, rate):
    ip("netns", "exec", place, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate",
       rate, "burst", "256kb", "latency", "50ms")


def sent_bytes(lan, number):
    code = "print(open('/sys/class/net/eth0/statistics/tx_bytes').read())"
    return int(lan.inside(number, code).stdout)


def measure(args, way):
    with Lan(args.hosts) as lan:
        if args.rate:
            shape(lan, args.rate)
        program = [f"{args.bin}/gpt_bench", f"--steps={args.steps}", f"--lanes={args.lanes}",
                   f"--lane-batch={args.lane_batch}", f"--width={args.width}",
                   f"--layers={args.layers}", "--read-memory-from=0", *args.more, *WAYS[way]]
        launchers = []
        for number in range(args.hosts):
            command = keelrun_words(lan, number, f"{args.bin}/keelrun", nnodes=args.hosts,
                                    workers=1, job="links")
            launchers.append(lan.start(number, [*command, *program]))
        for launcher in launchers:
            if launcher.end(RUN_LIMIT_S) != 0:
                raise SystemExit(launcher.text())
        text = "\n".join(launcher.text() for launcher in launchers)
        speed = SPEED.search(text)
        moved = MOVED.findall(text)
        sent = max(sent_bytes(lan, number) for number in range(args.hosts))
        return {"what": "links", "way": way, "hosts": args.hosts, "lanes": args.lanes,
                "rate": args.rate, "step_s": float(speed[2]), "sent_mb": sent / args.steps / 1e6,
                "placement": moved[-1] if moved else ""}


def show(rounds):
    for way in rounds[0]:
        if way == "allreduce":
            continue
        speed = [one["allreduce"]["step_s"] / one[way]["step_s"] for one in rounds]
        bytes_ = [one[way]["sent_mb"] / one["allreduce"]["sent_mb"] for one in rounds]
        print(f"{way}: samples/s {statistics.median(speed):.3f} of all-reduce's "
              f"({min(speed):.3f} to {max(speed):.3f}), bytes of the busiest host "
              f"{statistics.median(bytes_):.3f}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bin", required=True, help="where keelrun and gpt_bench are")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--lane-batch", type=int, default=1)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=7)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", default="1gbit",
                        help="of each link, as tc says it; '': it is not shaped")
    parser.add_argument("--ways", default="even,auto,allreduce")
    parser.add_argument("more", nargs="*", help="options of the program")
    args = parser.parse_args()
    why = why_not()
    if why:
        raise SystemExit(f"no hosts can be made here: {why}")
    rounds = []
    for _ in range(args.rounds):
        rounds.append({})
        for way in args.ways.split(","):
            rounds[-1][way] = measure(args, way)
            print(json.dumps(rounds[-1][way]), flush=True)
    if "allreduce" in rounds[0]:
        show(rounds)


if __name__ == "__main__":
    main()
