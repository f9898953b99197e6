"""Jobs that meet in a real etcd cluster of three, whose members and coordinators go.

Promises   a member that was killed is back, and in step, before the next round. A round in which an
           epoch broke, or a step is missing, is no success.
Does not   cut a link of the cluster: all of it is on loopback.
"""
import base64
import importlib.util
import os
import re
import sys
import threading
import time

import roles

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../tests/etcd"))
import cluster  # noqa: E402  tests/etcd/cluster.py

WATCHED_S = 6      # twice what a host may be silent for: what would break breaks by then
PERIOD_S = 0.02
OF_A_HOST = re.compile(r"/(?:beat|member)/(\d+)$")


def jobs_of_etcd():
    """tests/etcd/jobs.py, beside which ours has the same name."""
    spec = importlib.util.spec_from_file_location("etcd_jobs",
                                                  os.path.join(HERE, "../../tests/etcd/jobs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def new_job(keelrun, etcd, name):
    job = jobs_of_etcd().Job(keelrun, etcd, [], job=name)
    job.options = roles.OPTIONS
    return job


class Writes(threading.Thread):
    """When each host of a job wrote to the board, as a member that lives has it."""

    def __init__(self, etcd, job, member):
        super().__init__(daemon=True)
        self.etcd, self.member, self.ending = etcd, member, threading.Event()
        prefix = f"keel/{job.job}/board-"
        self.question = {"key": self.coded(prefix), "range_end": self.coded(prefix[:-1] + "."),
                         "serializable": True, "keys_only": True}
        self.seen, self.at = {}, {}    # {key: revision}, {slot: [moments]}

    @staticmethod
    def coded(text):
        return base64.b64encode(text.encode()).decode()

    def run(self):
        while not self.ending.wait(PERIOD_S):
            answer = self.etcd.ask("/v3/kv/range", self.question, self.member)
            now = time.monotonic()
            for one in answer.get("kvs", []):
                found = OF_A_HOST.search(base64.b64decode(one["key"]).decode())
                if found and self.seen.get(found[0]) != one["mod_revision"]:
                    self.seen[found[0]] = one["mod_revision"]
                    self.at.setdefault(found[1], []).append(now)

    def stop(self):
        self.ending.set()
        self.join()

    def longest(self):
        """Seconds between two writes of one host, or from its last one until now."""
        now = time.monotonic()
        return max(later - earlier for at in self.at.values()
                   for earlier, later in zip(at, [*at[1:], now]))


def lose_member(job, etcd, number, other):
    """(the longest time in which a host wrote nothing to the board, the longest gap between two
    steps, whether no epoch broke), of the seconds around the member's death."""
    writes = Writes(etcd, job, other)
    writes.start()
    time.sleep(2)
    since, begin = job.marks(), time.monotonic()
    if number is not None:
        etcd.kill(number)
    time.sleep(WATCHED_S)
    writes.stop()
    whole = not any(machine.find(" epoch(-broken)? epoch=", since[one])
                    for one, machine in job.machines.items())
    found = writes.longest(), roles.longest_gap(job.started, begin), whole
    if number is not None:
        etcd.start(number)
        etcd.await_ready(number)
    return found


def members(keelrun, trainer, whom, rounds):
    """Yields what lose_member() gives. `whom`: leader, member (that is not it), or nobody."""
    with cluster.Cluster(3) as etcd, new_job(keelrun, etcd, f"bench-{whom}") as job:
        job.command = roles.trainer_words(trainer, job.folder)
        job.start_all()
        for turn in range(rounds):
            job.go_on()
            time.sleep(roles.SETTLED_S)
            leader = etcd.leader()
            followers = [number for number in range(3) if number != leader]
            gone = {"leader": leader, "member": followers[turn % 2], "nobody": None}[whom]
            found = lose_member(job, etcd, gone, followers[(turn + 1) % 2])
            roles.keep(f"{whom}-{found[0]:.3f}-{found[1]:.3f}-{found[2]}", job.started)
            yield found
        job.stop()
        roles.check(job.epochs_formed(), job.started)
        if roles.missing(job.started):
            raise SystemExit(f"steps are missing: {roles.missing(job.started)}")


def gaps(keelrun, model, how, rounds, saves):
    """Yields what roles.gaps() does, of a job in etcd whose workers leave it the processors."""
    def words(folder):
        return roles.sleeper_words(model, folder, saves)
    with cluster.Cluster(3) as etcd:
        yield from roles.gaps(new_job(keelrun, etcd, f"bench-{how}"), words, how, rounds)
