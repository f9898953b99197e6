#!/usr/bin/env python3
"""Measures launching and recovering, keelrun beside torchrun; one JSON line a measurement.

Promises   both launchers take turns within each scenario, so that both meet the same machine.
Does not   retry: what did not recover within the limit is counted as not recovered.
"""
import argparse
import functools
import json
import os
import sys
import tempfile
import time

import etcd
import jobs
import links
import roles

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/net"))
import hosts  # noqa: E402  tests/net/hosts.py: hosts that are network namespaces
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../trainer"))
from common import keep_byte_code  # noqa: E402  bench/trainer/common.py

HERE = os.path.dirname(os.path.abspath(__file__))
# Of two dollars launchers leave one, as they take $local_rank for a word of theirs.
SHELL = ["--no-python", "/bin/sh", "-c", "echo main $RANK $$$$; exec sleep 1000"]
OFTEN = 20        # what is promised 20 times of 20
KILLS_A_JOB = 8   # a seat that dies again and again within seconds is started later and later
EPOCH = r"epoch (\d+) rank (\d+) of {} pid (\d+)"
ARGS = None


def put(scenario, system, seconds, **more):
    print(json.dumps({"scenario": scenario, "system": system, "seconds": seconds, **more}),
          flush=True)


def launcher(system):
    if system == "keelrun":
        return [ARGS.keelrun, "--log-level=warn"]
    return [ARGS.python, "-m", "torch.distributed.run"]


# --- From exec to the first line of a worker's main ---

def launch():
    for _ in range(ARGS.runs):
        for system in ("keelrun", "torchrun"):
            command = [*launcher(system), "--standalone", "--nproc-per-node=2", *SHELL]
            with jobs.Job(command) as job:
                came = job.collect(r"^main ", 2)
                put("launch", system, came and came[0][0] - job.started)


# --- kill -9 of one worker in place: the next epoch delivered to the survivors ---

def in_place():
    left = ARGS.kills
    while left > 0:
        with tempfile.TemporaryDirectory() as folder:
            command = [*launcher("keelrun"), "--standalone", "--nproc-per-node=4",
                       "--max-restarts=1000", "--no-python", ARGS.survivor, f"{folder}/done"]
            with jobs.Job(command) as job:
                for _ in range(min(left, KILLS_A_JOB)):
                    put("in-place kill", "keelrun", kill_in_place(job))
                left -= KILLS_A_JOB


def kill_in_place(job):
    since = getattr(job, "since", 0)
    whole = job.collect(EPOCH.format(4), 4, since)
    if not whole:
        raise SystemExit(f"the job is not whole again\n{job.tail()}")
    number = whole[-1][1][1]
    whole = job.collect(rf"epoch ({number}) rank (\d+) of 4 pid (\d+)", 4, since)
    victims = sorted(int(found[3]) for _, found in whole)
    job.turn = getattr(job, "turn", -1) + 1
    job.since = job.mark_here()
    time.sleep(0.05)  # steps of the new epoch
    at = time.monotonic()
    jobs.kill(victims[job.turn % 4])
    survivors = "|".join(str(pid) for pid in victims if pid != victims[job.turn % 4])
    # Of three, or of four where the replacement was there in time.
    came = job.collect(rf"epoch (\d+) rank \d+ of \d pid ({survivors}) ", 3, job.since, 30)
    if came and came[0][0] < at:
        raise SystemExit(f"an epoch that nobody's death explains\n{job.tail()}")
    return came and came[-1][0] - at


# --- kill -9 of one worker of a foreign program: all exec'd again ---

def turns(kills, runs):
    """Whose job is next: torchrun's, which take long, are spread evenly over keelrun's."""
    ours = [((number + 1) / kills, "keelrun") for number in range(kills)]
    return [system for _, system in sorted(
        ours + [((number + 1) / runs, "torchrun") for number in range(runs)])]


def foreign():
    for system in turns(ARGS.kills, ARGS.runs):
        command = [*launcher(system), "--standalone", "--nproc-per-node=2",
                   "--max-restarts=1000", *SHELL]
        # One a job: each further one would wait, since all of its seats fail at once.
        with jobs.Job(command) as job:
            put("foreign kill", system, kill_foreign(job, r"^main (\d+) (\d+)"))


def group():
    """The same for workers with a Gloo group, which has to meet anew."""
    for _ in range(ARGS.runs):
        for system in ("keelrun", "torchrun"):
            command = [*launcher(system), "--standalone", "--nproc-per-node=2", "--max-restarts=3",
                       f"{HERE}/group_worker.py"]
            path = os.path.dirname(ARGS.python) + os.pathsep + os.environ["PATH"]
            with jobs.Job(command, {"PATH": path}) as job:
                put("group kill", system, kill_foreign(job, r"^group (\d+) (\d+)"))


def kill_foreign(job, pattern):
    since = getattr(job, "since", 0)
    whole = job.collect(pattern, 2, since)
    if not whole:
        return None
    job.since = job.mark_here()
    time.sleep(0.2)
    at = time.monotonic()
    jobs.kill(int(whole[-1][1][2]))
    came = job.collect(pattern, 2, job.since, 60)
    job.since = job.since if came else job.mark_here()
    return came and came[-1][0] - at


# --- Hosts, as network namespaces ---

def start_host(lan, number):
    conf = f"last_call_timeout=2,is_host={int(number == 0)}"
    return lan.start(number, [
        ARGS.keelrun, "--nnodes=2:3", "--nproc-per-node=1", "--rdzv-backend=c10d",
        "--rdzv-id=bench", f"--rdzv-endpoint={lan.address(0)}:29400", f"--rdzv-conf={conf}",
        "--max-restarts=1000", "--no-python", ARGS.survivor, f"{lan.folder}/done"])


def next_epoch(launchers, world, since, at):
    """Seconds until the last of them has it."""
    for host in launchers:
        host.wait_for(EPOCH.format(world), since[host])
    return time.monotonic() - at


def with_hosts(rounds, disturb):
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    with hosts.Lan(3) as lan:
        machines = [start_host(lan, number) for number in range(3)]
        next_epoch(machines, 3, {host: 0 for host in machines}, 0)
        for _ in range(rounds):
            time.sleep(0.5)
            disturb(lan, machines)
        for machine in machines:   # their workers end with them, which leaving the net awaits
            machine.kill()


def lost_host():
    def disturb(lan, machines):
        since = {host: host.mark() for host in machines}
        at = time.monotonic()
        lan.cut(2)
        put("lost host", "keelrun", next_epoch(machines[:2], 2, since, at))
        since, at = {host: host.mark() for host in machines}, time.monotonic()
        lan.join(2)
        put("lost host back", "keelrun", next_epoch(machines, 3, since, at))

    with_hosts(ARGS.runs, disturb)


def supervisor():
    def disturb(lan, machines):
        since = {host: host.mark() for host in machines}
        at = time.monotonic()
        machines[2].kill()
        put("supervisor killed", "keelrun", next_epoch(machines[:2], 2, since, at))
        machines[2] = start_host(lan, 2)
        since, at = {**{host: host.mark() for host in machines}, machines[2]: 0}, time.monotonic()
        put("supervisor back", "keelrun", next_epoch(machines, 3, since, at))

    with_hosts(OFTEN, disturb)


# --- Coordinators that go, and who comes ---

def counted(scenario, values):
    """Puts what comes; where no more comes before OFTEN did, that one did not recover."""
    try:
        yield from values
    except AssertionError as why:
        print(f"{scenario}: {why}", file=sys.stderr, flush=True)
        put(scenario, "keelrun", None)


def coordinator(how):
    job = roles.machines.Job(ARGS.keelrun, [], options=roles.OPTIONS)
    name = f"coordinator {how}"
    words = functools.partial(roles.trainer_words, ARGS.trainer)
    for gap in counted(name, roles.gaps(job, words, how, OFTEN)):
        put(name, "keelrun", gap)


# A worker that is cut off or stands still keeps its lock of the checkpoint directory.
SAVING = {False: "", True: ", it holds the checkpoints"}
CUTS = (("first", False), ("heir", False), ("heir", True))


def coordinator_cut():
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    for whom, saves in CUTS:
        name = f"coordinator cut off, {whom}{SAVING[saves]}"
        found = links.rounds(ARGS.keelrun, ARGS.trainer, whom, OFTEN, saves)
        for gap, follows, steps in counted(name, found):
            put(name, "keelrun", gap)
            put(f"{name}: link up, it follows", "keelrun", follows)
            put(f"{name}: link up, step of all", "keelrun", steps)


def coming():
    for how in roles.COMING:
        name = f"comes: {how}"
        for known, step in counted(name, roles.joins(ARGS.keelrun, ARGS.model, how, OFTEN)):
            put(name, "keelrun", known)
            put(f"{name}: first step with it", "keelrun", step)


def with_etcd(measure):
    reason = etcd.cluster.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    measure()


def etcd_members():
    for whom in ("nobody", "member", "leader"):
        name = f"etcd: {whom} killed"
        found = etcd.members(ARGS.keelrun, ARGS.trainer, whom, OFTEN)
        for unwritten, gap, whole in counted(name, found):
            put(f"{name}, between two writes of a host", "keelrun", unwritten if whole else None)
            put(f"{name}, between two steps", "keelrun", gap if whole else None)


def etcd_coordinator(how, saves=True):
    name = f"etcd: coordinator {how}{SAVING[saves and how == 'silent']}"
    for gap in counted(name, etcd.gaps(ARGS.keelrun, ARGS.model, how, OFTEN, saves)):
        put(name, "keelrun", gap)


def etcd_silent():
    for saves in SAVING:
        etcd_coordinator("silent", saves)


def board():
    for count in (100, 1000):
        for _ in range(max(ARGS.runs // 2, 1)):
            with jobs.Job([ARGS.board_bench, str(count)]) as job:
                came = job.collect(r"^formed after (\S+) s .* cpu (\S+) s", 1)
                put(f"epoch of {count} hosts", "keelrun", came and float(came[0][1][1]),
                    cpu_of_a_host=came and float(came[0][1][2]) / count)


def takeover():
    for _ in range(max(ARGS.runs // 2, 1)):
        with jobs.Job([ARGS.takeover_bench, "--json", "100", "1000"]) as job:
            for _, found in job.collect(r"^(\{\"hosts\".*)", 2, 0, 300) or []:
                told = json.loads(found[1])
                if not told["came"]:
                    put(f"takeover of {told['hosts']} hosts", "keelrun", None)
                    continue
                put(f"takeover of {told['hosts']} hosts", "keelrun", told["takeover_s"][0],
                    cpu_of_a_host=told["takeover_host_cpu_ms"][0] / 1e3,
                    cpu_of_a_host_a_second=told["host_cpu_ms_per_s"][0] / 1e3)


SCENARIOS = {"launch": launch, "in-place": in_place, "foreign": foreign, "group": group,
             "lost-host": lost_host, "supervisor": supervisor,
             "coordinator-leaves": lambda: coordinator("leaves"),
             "coordinator-killed": lambda: coordinator("killed"),
             "coordinator-cut": coordinator_cut, "coming": coming,
             "etcd-members": lambda: with_etcd(etcd_members),
             "etcd-leaves": lambda: with_etcd(lambda: etcd_coordinator("leaves")),
             "etcd-killed": lambda: with_etcd(lambda: etcd_coordinator("killed")),
             "etcd-silent": lambda: with_etcd(etcd_silent), "board": board,
             "takeover": takeover}


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO",
                        help=f"of {' '.join(SCENARIOS)}; all of them by default")
    parser.add_argument("--bin", required=True, type=os.path.abspath,
                        help="folder of keelrun and its companions")
    parser.add_argument("--python", required=True, type=os.path.abspath,
                        help="an interpreter with PyTorch")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--keep", type=os.path.abspath, metavar="DIR",
                        help="leave there what the launchers of coordinators' rounds printed")
    ARGS = parser.parse_args()
    if ARGS.keep:
        os.makedirs(ARGS.keep, exist_ok=True)
    roles.KEEP = ARGS.keep
    keep_byte_code()
    ARGS.keelrun, ARGS.survivor = f"{ARGS.bin}/keelrun", f"{ARGS.bin}/survivor"
    ARGS.takeover_bench = f"{ARGS.bin}/takeover_bench"
    ARGS.board_bench, ARGS.trainer = f"{ARGS.bin}/board_bench", f"{ARGS.bin}/minimal_train"
    ARGS.model = f"{ARGS.bin}/model_train"
    unknown = [name for name in ARGS.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario '{unknown[0]}'; there are {' '.join(SCENARIOS)}")
    for name in ARGS.scenario or SCENARIOS:
        SCENARIOS[name]()


if __name__ == "__main__":
    main()
