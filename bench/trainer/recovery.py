#!/usr/bin/env python3
"""Kills one of two workers of the same small job under keelrun, torchrun and torchft, in turns.

Promises   one JSON line a kill: {"what":"recovery","system":S,"stall":S1,"back":S2}: how long none
           of those left and of those who take their place committed a step, and how long until
           the killed one's replacement did. Steps last --step-ms.
Does not   hide a peer that does not recover: it has nulls then.
"""
import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STEP = re.compile(r"step (\d+) rank (\d+) of (\d+) pid (\d+)")
KILL_AT = 30
START_LIMIT_S = 120
BACK_LIMIT_S = 60
ARGS = None


class Watched:
    """Processes that tell their steps, with the times at which they did."""

    def __init__(self):
        self.told = []      # (time, rank, world, pid)
        self.processes = []
        self.folder = tempfile.TemporaryDirectory(prefix="keel-recovery-")

    def start(self, command, **more):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}
        with open(os.path.join(self.folder.name, "errors"), "ab") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                       stderr=errors, text=True, start_new_session=True)
        self.processes.append(process)
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process):
        for line in process.stdout:
            found = STEP.search(line)
            if found:
                self.told.append((time.monotonic(), *map(int, found.groups()[1:])))

    def wait(self, wanted, limit):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = wanted()
            if found:
                return found
            time.sleep(0.005)
        return None

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        time.sleep(1)
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pid in {pid for *_, pid in self.told}:   # workers that outlived their launcher
            if pid > 1 and os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# Each starts its job and returns what starts the killed worker again, if its launcher does not.
def keelrun(watched):
    watched.start([f"{ARGS.bin}/keelrun", "--standalone", "--nproc-per-node=2", "--max-restarts=3",
                   "--no-python", "--log-level=error", f"{ARGS.bin}/model_train",
                   "--steps=1000000", "--lanes=2", "--model=mlp", f"--pause={ARGS.step_ms}ms"])


def torchrun(watched):
    watched.start([ARGS.python, "-m", "torch.distributed.run", "--standalone",
                   "--nproc-per-node=2", "--max-restarts=3", f"{HERE}/peers/torchrun_job.py",
                   f"--checkpoint={watched.folder.name}/checkpoint.pt",
                   f"--step-ms={ARGS.step_ms}"], TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")


def torchft(watched):
    port = free_port()
    lighthouse = os.path.join(os.path.dirname(ARGS.torchft_python), "torchft_lighthouse")
    watched.start([lighthouse, "--min_replicas", "1", "--bind", f"[::]:{port}",
                   "--heartbeat_timeout_ms", "1000", "--join_timeout_ms", "1000",
                   "--quorum_tick_ms", "20"])
    time.sleep(0.3)

    def replica(rank):
        watched.start([ARGS.torchft_python, f"{HERE}/peers/torchft_job.py", f"--replica={rank}",
                       f"--port={free_port()}", f"--step-ms={ARGS.step_ms}"],
                      TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")

    replica(0)
    replica(1)
    return lambda: replica(1)


def measure(system):
    watched = Watched()
    try:
        restart = SYSTEMS[system](watched)

        def both():
            return sum(world == 2 and rank == 1 for _, rank, world, _ in watched.told) >= KILL_AT

        if not watched.wait(both, START_LIMIT_S):
            return {"note": "never ran"}
        victim = [pid for _, rank, _, pid in watched.told if rank == 1][-1]
        old = {pid for *_, pid in watched.told}
        at = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        if restart:
            restart()
        back = watched.wait(lambda: [when for when, rank, _, pid in list(watched.told)
                                     if pid not in old and rank == 1], BACK_LIMIT_S)
        time.sleep(0.5)
        # The widest gap around the kill, of those who live or of who takes their place.
        told = [when for when, _, _, pid in watched.told if pid != victim and when > at - 1]
        gaps = [b - a for a, b in zip(told, told[1:]) if b > at]
        return {"stall": max(gaps) if gaps and back else None, "back": back and back[0] - at}
    finally:
        watched.end()


SYSTEMS = {"keelrun": keelrun, "torchrun": torchrun, "torchft": torchft}


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", nargs="*", metavar="SYSTEM",
                        help="of keelrun torchrun torchft; all of them by default")
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True, type=os.path.abspath)
    parser.add_argument("--torchft-python", required=True, type=os.path.abspath,
                        help="an interpreter with PyTorch and torchft")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--step-ms", type=float, default=50)
    ARGS = parser.parse_args()
    for turn in range(ARGS.rounds):
        for system in ARGS.system or SYSTEMS:
            print(json.dumps({"what": "recovery", "system": system, "round": turn,
                              **measure(system)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
