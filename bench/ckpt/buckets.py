#!/usr/bin/env python3
"""Measures saves and loads of one real state in a bucket: ours beside PyTorch's, and ours on disk.

Each save and each load is a process of its own, against a store in memory (s3_sink) that is begun
anew for each system; in every round the systems run in another order. Prints, of every figure, the
median of all rounds, and ratios to the other systems of the same round. With --rate the store's
link carries so many MB a second, and one more ratio is to the time that the bytes alone would take.
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import urllib.request

from common import Part, bytes_of, evict, lay_out_state, now

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEMS = ("keel_disk", "keel_s3", "dcp_s3", "torch_save_s3")


class Sink:
    def __init__(self, program, rate):
        self.process = subprocess.Popen([program, f"--rate={rate}"], stdout=subprocess.PIPE,
                                        text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def close(self):
        self.process.kill()
        self.process.wait()

    def count(self):
        """What it was asked for since the last count."""
        asked = urllib.request.Request(self.url + "/_sink", method="DELETE")
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)


def environment(sink):
    return {**os.environ, "AWS_ENDPOINT_URL": sink.url, "AWS_ACCESS_KEY_ID": "BENCHKEY",
            "AWS_SECRET_ACCESS_KEY": "bench-secret", "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true", "PYTHONWARNINGS": "ignore"}


def ours(args, env, what, root):
    threads = {"save": "--threads=1", "load": "--threads=2"}[what]
    part = Part([f"{args.bin}/ckpt_cycle", what, f"--state={args.tmp}/state", f"--root={root}",
                 threads], env)
    if what == "load" and "://" not in root:
        evict(root)
    start = now()
    part.tell()
    said = json.loads(part.expect("RESULT"))
    if what == "save":
        part.tell()
        part.expect("DONE")
    took = now() - start
    part.end()
    if "error" in said:
        raise RuntimeError(f"ckpt_cycle: {said['error']}")
    if what == "save":
        return {"s": took, "cpu_s": said["cpu_s"], "peak_mb": said["peak_mb"]}
    return {"s": said["load_s"], "cpu_s": said["load_cpu_s"], "peak_mb": said["load_peak_mb"],
            "ok": said["ok"]}


def theirs(args, env, system, what, url):
    part = Part([sys.executable, f"{HERE}/bucket_peer.py", what, f"--system={system}",
                 f"--state={args.state}/state.safetensors", f"--url={url}"], env)
    part.tell()
    said = json.loads(part.expect("RESULT"))
    part.end()
    return said


def measure(args, system):
    disk = f"{args.tmp}/ck"
    shutil.rmtree(disk, ignore_errors=True)
    with contextlib.closing(Sink(f"{args.bin}/s3_sink", args.rate)) as sink:
        env, result = environment(sink), {}
        root = disk if system == "keel_disk" else "s3://bench/run"
        os.sync()
        sink.count()
        for what in ("save", "load"):
            said = (ours(args, env, what, root) if system.startswith("keel") else
                    theirs(args, env, system, what, root))
            if not said.pop("ok", True):
                raise RuntimeError(f"{system} loaded other bytes than it had saved")
            counted = sink.count()
            result |= {f"{what}_{name}": value for name, value in said.items()}
            moved = counted["received" if what == "save" else "sent"]
            result[f"{what}_mb"] = (bytes_of(disk) if system == "keel_disk" else moved) / 1e6
            result[f"{what}_requests"] = counted["requests"]
    shutil.rmtree(disk, ignore_errors=True)
    return result


def spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def show_ratios(rounds, rate):
    for what in ("save", "load"):
        for system in rounds[0]:
            if system != "keel_s3":
                ratios = [one["keel_s3"][f"{what}_s"] / one[system][f"{what}_s"] for one in rounds]
                print(f"{what}: keel_s3 / {system} {spread(ratios)}")
        if rate:
            over = [one["keel_s3"][f"{what}_s"] * rate / one["keel_s3"][f"{what}_mb"]
                    for one in rounds]
            print(f"{what}: keel_s3 / what the link needs for its bytes {spread(over)}")
    if "keel_disk" in rounds[0]:
        more = [(one["keel_s3"]["save_cpu_s"] - one["keel_disk"]["save_cpu_s"]) * 1e3 /
                one["keel_s3"]["save_mb"] for one in rounds]
        memory = [one["keel_s3"]["save_peak_mb"] - one["keel_disk"]["save_peak_mb"]
                  for one in rounds]
        print(f"save: CPU seconds a stored GB over the disk's {spread(more)}, "
              f"MB of memory {spread(memory)}")


def show(rounds):
    names = list(next(iter(rounds[0].values())))
    print("| system | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for system in rounds[0]:
        medians = [statistics.median(one[system][name] for one in rounds) for name in names]
        print(f"| {system} | " + " | ".join(f"{value:.4g}" for value in medians) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="build/bin")
    parser.add_argument("--state", required=True, help="where make_state.py wrote")
    parser.add_argument("--tmp", required=True, help="an empty directory on the disk to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=0, help="of the store's link, MB/s; 0: none")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    args = parser.parse_args()
    systems = args.systems.split(",")
    if unknown := set(systems) - set(SYSTEMS):
        parser.error(f"no system {unknown.pop()}; there are {', '.join(SYSTEMS)}")
    os.makedirs(args.tmp, exist_ok=True)
    lay_out_state(args.bin, args.state, args.tmp)
    rounds = []
    for number in range(args.rounds):
        order = list(systems)
        random.Random(number).shuffle(order)
        one = {system: measure(args, system) for system in order}
        rounds.append({system: one[system] for system in systems})
        print(number, {system: round(one[system]["save_s"], 2) for system in systems},
              {system: round(one[system]["load_s"], 2) for system in systems}, file=sys.stderr,
              flush=True)
    show(rounds)
    if "keel_s3" in systems:
        show_ratios(rounds, args.rate)


if __name__ == "__main__":
    main()
