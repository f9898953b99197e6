#!/usr/bin/env python3
"""A worker with much memory is killed, and how soon that is noticed; a worker in Python is killed
and started again, and what that costs the others of its host until it joins.

Promises   JSON lines. {"what":"noticed","memory_mb":M,"ms":T}: from the SIGKILL to the launcher's
           line that the epoch is broken; the worker is the second of two of gpt_bench.
           {"what":"beside","way":W,"usual_ms":U,"step_ms":S,"join_s":J}: a median step of two
           workers by themselves, and while a third one starts, until it says that it is ready.
           `way` is polite, or eager: the launcher may not raise a priority, so nobody is polite.
           Ways take turns.
Does not   hide that lines pass a pipe: times hold that.
"""
import argparse
import datetime
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../../tests/python/package/train_models.py")
LINE_TIME = re.compile(r"^(\S+)Z ")
SAID = re.compile(r"step (\d+) rank (\d+) of (\d+) pid (\d+)")
WITHOUT_RIGHT = ["setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice"]


def started(words, environment=None):
    return subprocess.Popen(words, env={**os.environ, **(environment or {})}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ended(process):
    """Its workers are tied to it by the kernel."""
    process.kill()
    process.wait()


def noticed(args):
    process = started([f"{args.bin}/keelrun", "--standalone", "--nproc-per-node=2", "--no-python",
                       f"{args.bin}/gpt_bench", "--steps=1000000", f"--width={args.width}",
                       "--log-every=1"])
    killed, memory = None, 0
    try:
        for line in process.stdout:
            if killed is None and "step step=4 " in line:
                children = subprocess.run(["pgrep", "-P", str(process.pid), "gpt_bench"],
                                          capture_output=True, text=True, check=True)
                victim = int(children.stdout.split()[1])
                with open(f"/proc/{victim}/statm", encoding="ascii") as statm:
                    memory = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                killed = time.time()
                os.kill(victim, signal.SIGKILL)
            if killed and "epoch-broken" in line:
                at = datetime.datetime.fromisoformat(LINE_TIME.match(line)[1] + "+00:00")
                return {"what": "noticed", "memory_mb": memory >> 20,
                        "ms": (at.timestamp() - killed) * 1000}
    finally:
        ended(process)
    raise SystemExit("the job ended before its worker's death was told")


def lengths(times):
    return [after - before for before, after in zip(times, times[1:])]


def job(args, workers, steps, way):
    words = WITHOUT_RIGHT if way == "eager" else []
    return started([*words, f"{args.bin}/keelrun", "--standalone", f"--nproc-per-node={workers}",
                    "--spares=0", "--max-restarts=1000", SCRIPT, "--model=wide",
                    "--optimizer=AdamW", f"--steps={steps}", "--lanes=6"],
                   {"PYTHONPATH": args.package, "PYTHON_EXEC": args.python,
                    "OMP_NUM_THREADS": "1"})


def usual(args):
    process = job(args, 2, 120, "polite")
    times = [time.monotonic() for line in process.stdout
             if (found := SAID.search(line)) and found[2] == "0"]
    process.wait()
    return statistics.median(lengths(times[20:]))


def beside(args, way):
    usual_s = usual(args)
    process = job(args, 3, 1000000, way)
    pids, times, killed = {}, [], None
    try:
        for line in process.stdout:
            if found := SAID.search(line):
                pids[found[2]] = int(found[4])
                if found[2] == "0" and (killed is None or found[3] == "2"):
                    times.append(time.monotonic())
            if killed is None and len(times) > 40 and len(pids) == 3:
                os.kill(pids["2"], signal.SIGKILL)
                killed, times = time.monotonic(), []
            if killed and "joining reason" in line:
                return {"what": "beside", "way": way, "usual_ms": usual_s * 1000,
                        "step_ms": statistics.median(lengths(times)) * 1000,
                        "join_s": time.monotonic() - killed}
    finally:
        ended(process)
    raise SystemExit("the job ended before the replacement joined")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the folder of keelrun and gpt_bench")
    parser.add_argument("--package", required=True, help="the folder of the package evenkeel")
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch")
    parser.add_argument("--width", type=int, default=1280, help="of the GPT whose worker is killed")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for _ in range(args.rounds):
        print(json.dumps(noticed(args)), flush=True)
        for way in ("eager", "polite"):
            print(json.dumps(beside(args, way)), flush=True)


if __name__ == "__main__":
    main()
