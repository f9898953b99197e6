#!/usr/bin/env python3
"""Measures saves and loads of one real state: ours beside PyTorch's, each in fresh processes.

In every round the systems run in random order; anchors run in front of, in the middle of and
behind it, since shared machines drift: read report.py's ratios to the anchors of the same round.
Appends one JSON line a run to --json. Does not make the state (make_state.py does).
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys

from common import Part, bytes_of, evict, lay_out_state, now

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ["torch_save", "safetensors", "dcp", "dcp_async"]
# Measured when asked for by --systems; torchsnapshot has to be installed.
MORE_PEERS = ["dcp_zstd", "dcp_async_process", "torchsnapshot"]
RUN_LIMIT_S = 300
# name: what ckpt_cycle is given for the save, and for the load
OURS = {
    "keel": (["--threads=1"], ["--threads=2"]),
    "keel_t2": (["--threads=2"], ["--threads=2", "--live"]),
    "keel_buffered": (["--threads=1", "--no-direct"], ["--threads=1"]),
    "keel_none": (["--threads=1", "--codec=none"], ["--threads=2"]),
    "keel_background": (["--threads=1", "--background"], ["--threads=2"]),
}


def cycle(args, mode, root, options):
    """A ckpt_cycle that is ready and waits for the word."""
    return Part([f"{args.bin}/ckpt_cycle", mode, f"--state={args.tmp}/state", f"--root={root}",
                 *options])


def measure_ours(args, system, world):
    save_options, load_options = OURS[system]
    root = f"{args.tmp}/ck"
    shutil.rmtree(root, ignore_errors=True)
    parts = [cycle(args, "save", root, save_options + [f"--part={part}", f"--parts={world}"])
             for part in range(world)]
    os.sync()
    start = now()
    for part in parts:
        part.tell()
    shards = [json.loads(part.expect("RESULT")) for part in parts]
    for part in parts:  # the vote, in small: nobody commits before all shards are durable
        part.tell()
        part.expect("DONE")
    durable = now() - start
    for part in parts:
        part.process.wait()
    result = {"system": system, "world": world, "durable_s": durable, "bytes": bytes_of(root)}
    for name, over in (("call_s", max), ("slow_s", max), ("cpu_s", sum), ("peak_mb", sum)):
        result[name] = over(shard[name] for shard in shards)
    result["steps"], result["step_ms"] = shards[0]["steps"], shards[0].get("step_ms")
    loader = cycle(args, "load", root, load_options)
    evict(root)
    loader.tell()
    loaded = json.loads(loader.expect("RESULT"))
    if "error" in loaded:
        raise RuntimeError(f"ckpt_cycle could not load what it saved: {loaded['error']}")
    result |= loaded
    loader.process.wait()
    shutil.rmtree(root)
    return result


def run_python(args, command):
    env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    run = subprocess.Popen(command + ["--state", args.state, "--tmp", args.tmp], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)
    try:
        said, errors = run.communicate(timeout=RUN_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return {"error": f"not done after {RUN_LIMIT_S} s"}
    lines = [line for line in said.splitlines() if line.startswith("RESULT ")]
    return json.loads(lines[0][7:]) if lines else {"error": errors[-1500:]}


def measure(args, system, world):
    if system == "anchors":
        return run_python(args, [sys.executable, f"{HERE}/anchors.py"])
    if system in OURS:
        try:
            return measure_ours(args, system, world)
        except RuntimeError as error:
            return {"error": str(error)}
    return run_python(args, [sys.executable, "-m", "torch.distributed.run", "--standalone",
                             f"--nproc-per-node={world}", f"{HERE}/peer.py", "--system", system])


def order(systems, worlds, seed):
    todo = [(system, world) for system in systems for world in worlds]
    random.Random(seed).shuffle(todo)
    half = len(todo) // 2
    anchor = [("anchors", 1)]
    return anchor + todo[:half] + anchor + todo[half:] + anchor


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="build/bin")
    parser.add_argument("--state", required=True, help="where make_state.py wrote")
    parser.add_argument("--tmp", required=True, help="an empty directory on the disk to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worlds", default="1,2", help="numbers of processes")
    parser.add_argument("--systems", default=",".join(PEERS + list(OURS)))
    parser.add_argument("--json", default="ckpt.jsonl")
    args = parser.parse_args()
    unknown = set(args.systems.split(",")) - {*PEERS, *MORE_PEERS, *OURS}
    if unknown:
        known = ", ".join([*PEERS, *MORE_PEERS, *OURS])
        parser.error(f"no system {unknown.pop()}; there are {known}")
    os.makedirs(args.tmp, exist_ok=True)
    lay_out_state(args.bin, args.state, args.tmp)
    worlds = [int(world) for world in args.worlds.split(",")]
    for rnd in range(args.rounds):
        for system, world in order(args.systems.split(","), worlds, rnd):
            result = measure(args, system, world)
            result.update(system=system, world=world, round=rnd, load1=os.getloadavg()[0])
            with open(args.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            shown = {k: round(v, 2) for k, v in result.items() if k.endswith("_s")}
            print(rnd, system, world, result.get("error", shown), flush=True)


if __name__ == "__main__":
    main()
