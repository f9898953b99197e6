#!/usr/bin/env python3
"""Kills a worker or a launcher of the same small job under keelrun, torchrun and torchft, in turns.

Promises   one JSON line a kill: {"what":"recovery","system":S,"group":G,"stall":S1,"back":S2,
           "lost":N,...}: how long none of those left and of those who take their place committed a
           step, how long until one of the new processes did, and how many steps were made again.
           "start" is from exec to the first step, "phases" where the peers' time went, "error" when
           a survivor's group failed. Steps last --step-ms.
Does not   hide a peer that does not recover: it has nulls then, and a "note" that says how.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from cases import CASES, USUAL
from common import keep_byte_code

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/harness"))
from free_port import free_port  # noqa: E402
from marked import kill, marked  # noqa: E402

STEP = re.compile(r"step (\d+) rank (\d+) of (\d+) pid (\d+)")
PHASE = re.compile(r"phase (\w+) pid (\d+)")
MARK = "KEEL_BENCH_RECOVERY"
KILL_AT = 30
START_LIMIT_S = 120
ARGS = None


class Watched:
    """Processes that tell their steps, with the times at which they did."""
    count = 0

    def __init__(self):
        Watched.count += 1
        self.mark = f"{os.getpid()}.{Watched.count}"
        self.told = []      # (time, step, rank, world, pid, number of the launcher)
        self.phases = []    # (time, name, pid)
        self.processes = []
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix="keel-recovery-")

    def start(self, command, number, **more):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                       MARK: self.mark, **more}
        with open(os.path.join(self.folder.name, "errors"), "ab") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE,
                                       stderr=errors, text=True, start_new_session=True)
        self.processes.append(process)
        threading.Thread(target=self._read, args=(process, number), daemon=True).start()
        return process

    def _read(self, process, number):
        for line in process.stdout:
            step, phase = STEP.search(line), PHASE.search(line)
            if step:
                self.told.append((time.monotonic(), *map(int, step.groups()), number))
            elif phase:
                self.phases.append((time.monotonic(), phase[1], int(phase[2])))

    def wait(self, wanted, limit):
        """What `wanted` found; None at the limit, or when no process is left that could do it."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = wanted()
            if found or not self.alive():
                return found
            time.sleep(0.005)
        return None

    def alive(self):
        return any(process.poll() is None for process in self.processes)

    def descendants(self):
        """All that this job started and that lives, by a mark in the environment."""
        return marked(MARK, self.mark)

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        time.sleep(1)
        for pid in self.descendants():   # workers that outlived their launcher too
            kill(pid)
        for process in self.processes:
            process.wait()
        self.folder.cleanup()


def launch(case, watched, number):
    command, environment = case.start.command(ARGS, watched, number)
    return watched.start(command, number, **environment)


def struck(case, hosts):
    """The launchers that are killed; torchft's workers are their own."""
    if case.dies == "worker" and case.start.is_launcher:
        return []
    return [hosts[0 if case.dies == "store" else -1]]


def strike(case, watched, hosts):
    """Kills what the case says; when that was, and whose steps do not count any more."""
    number = 0 if case.dies == "store" else len(hosts) - 1
    of_host = [row for row in watched.told if row[5] == number]
    victim = of_host[-1][4] if case.hosts > 1 else [row for row in of_host if row[2] == 1][-1][4]
    at = time.monotonic()
    if case.dies != "worker":
        hosts[number].kill()
    kill(victim)
    if case.again is not None:
        time.sleep(case.again)
        hosts[number].wait()
        launch(case, watched, number)
    return at, victim


def account(told, victim, at):
    """The widest gap around the kill, of those who live or of who takes their place, and the steps
    that were made again after it."""
    rows = sorted(row for row in told if row[4] != victim)
    near = [row for row in rows if row[0] > at - 1]
    gaps = [(b[0] - a[0], a, b) for a, b in zip(near, near[1:]) if b[0] > at]
    if not gaps:
        return {"stall": None, "lost": None}
    stall, before, after = max(gaps)
    highest = max(row[1] for row in rows if row[0] <= before[0])
    return {"stall": stall, "lost": max(0, highest - after[1] + 1)}


def phases(watched, pid, since):
    """{name: seconds since then} of a new worker, and when the first old one's group failed."""
    found = {name: at - since for at, name, who in watched.phases if who == pid and at > since}
    errors = [at - since for at, name, _ in watched.phases if name == "error" and at > since]
    return {"phases": found, "error": min(errors, default=None)}


def measure(name):
    case, watched = CASES[name], Watched()
    try:
        begun = time.monotonic()
        hosts = [launch(case, watched, number) for number in range(case.hosts)]

        def both():
            return sum(world == 2 and rank == 1
                       for _, _, rank, world, _, _ in list(watched.told)) >= KILL_AT

        if not watched.wait(both, START_LIMIT_S):
            return {"note": "never ran", "said": last_words(watched)}
        first = watched.told[0]
        started = {"start": first[0] - begun,
                   "start_phases": phases(watched, first[4], begun)["phases"]}
        old = {row[4] for row in watched.told}
        at, victim = strike(case, watched, hosts)

        def again():
            # Not replaced: whoever goes on alone, be it in place.
            alone = case.again is None and case.dies != "worker"
            return [row for row in list(watched.told) if row[0] > at and
                    (row[3] == 1 if alone else row[4] not in old)]

        back = watched.wait(again, ARGS.limit)
        if not back:
            ended = not watched.alive()
            took = time.monotonic() - at
            return {**started, "note": f"the job ended after {took:.0f} s" if ended else
                    f"not within {ARGS.limit:.0f} s", "said": last_words(watched)}
        time.sleep(0.5)
        if any(process.poll() is not None for process in watched.processes
               if process not in struck(case, hosts)):
            return {**started, "note": "a survivor crashed", "said": last_words(watched)}
        return {**started, "back": back[0][0] - at, **account(list(watched.told), victim, at),
                **phases(watched, back[0][4], at)}
    finally:
        watched.end()


def measured(name):
    """What goes wrong with one system costs the others nothing."""
    try:
        return measure(name)
    except (OSError, IndexError, ValueError) as error:
        return {"note": f"could not be measured: {error!r}"}


def last_words(watched):
    with open(os.path.join(watched.folder.name, "errors"), encoding="utf-8",
              errors="replace") as file:
        return file.read()[-500:]


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="*", metavar="SYSTEM", choices=[[], "all", *CASES],
                        help=f"all, or of {'; '.join(CASES)} ({' '.join(USUAL)})")
    parser.add_argument("--bin", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True, type=os.path.abspath)
    parser.add_argument("--torchft-python", type=os.path.abspath,
                        help="an interpreter with PyTorch and torchft; without it torchft's rows "
                             "say that it is missing")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--step-ms", type=float, default=50)
    parser.add_argument("--limit", type=float, default=60,
                        help="seconds after which a job counts as not recovered (60)")
    ARGS = parser.parse_args()
    keep_byte_code()
    wanted = list(CASES) if ARGS.system == ["all"] else ARGS.system or USUAL
    for turn in range(ARGS.rounds):
        for system in wanted:
            if system.startswith("torchft") and not ARGS.torchft_python:
                result = {"note": "torchft is not there: --torchft-python"}
            else:
                result = measured(system)
            print(json.dumps({"what": "recovery", "system": system, "round": turn,
                              "group": CASES[system].group,
                              **{"stall": None, "back": None, **result}}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
