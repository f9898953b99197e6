"""A job in network namespaces whose coordinator is cut off, again and again, and follows.

Promises   what each round took is told of the two survivors' steps, and of who was cut off. Whoever
           coordinates then is cut off in the next round.
Does not   close any connection: nobody is told that the coordinator is gone.
"""
import itertools
import os
import time

import roles
import links_test  # tests/failover/links_test.py, found as roles.py found machines.py
import machines

FOLLOWED = " board-(left|followed) "


class Job(links_test.Job):
    """Its machines tell when they made which step."""

    def __init__(self, lan, keelrun, worker):
        super().__init__(lan)
        self.keelrun, self.worker = keelrun, worker

    def start(self, number):
        command = [self.keelrun, f"--nnodes={self.nnodes}", "--nproc-per-node=1",
                   "--rdzv-backend=c10d", "--rdzv-id=links", f"--rdzv-endpoint={self.endpoints}",
                   f"--rdzv-conf={machines.CONF}", *roles.OPTIONS, "--no-python", *self.worker]
        machine = machines.Machine(
            number, ["ip", "netns", "exec", self.lan.hosts[number], *command],
            self.lan.environment(), self.lan.folder, ("KEEL_BENCH_HOST", f"{os.getpid()}.{number}"))
        self.lan.launchers.append(machine)
        self.launchers[number] = machine

    def coordinator(self):
        """Who formed the newest epoch: of two boards of one term, one was left again."""
        return max(self.launchers, key=lambda one: max(
            (int(found[1]) for found in map(machines.FORMED.search, self.launchers[one].lines)
             if found), default=0))

    def settle(self, several):
        for _ in range(roles.STEPS_AFTER):
            roles.first_step(several, time.monotonic())


def one_round(job):
    """(the longest gap between two steps; from the link's return until who was cut off follows the
    new board; and until the first step of all three), in seconds."""
    number = job.coordinator()
    cut = job.launchers[number]
    others = [one for one in job.launchers if one != number]
    survivors = [job.launchers[one] for one in others]
    since, begin = job.marks(), time.monotonic()
    job.lan.cut(number)
    job.whole(2, others, since)
    job.settle(survivors)
    gap = roles.longest_gap(job.launchers.values(), begin)   # the first of an epoch tells
    since, begin = job.marks(), time.monotonic()
    job.lan.join(number)
    cut.wait_for(FOLLOWED, since[number])
    follows = time.monotonic() - begin
    job.whole(3, job.launchers, since)
    return gap, follows, roles.first_step(job.launchers.values(), time.monotonic()) - begin


def one_job(keelrun, trainer, count, saves):
    """Yields what one_round() gives, so many times; first of the coordinator that began the job."""
    with links_test.hosts.Lan(3) as lan:
        job = Job(lan, keelrun, roles.trainer_words(trainer, lan.folder, saves))
        for number in range(3):
            job.start(number)
        job.whole(3, range(3))
        for _ in range(count):
            job.settle(job.launchers.values())
            time.sleep(roles.SETTLED_S)
            found = one_round(job)
            roles.keep("cut-" + "-".join(f"{one:.3f}" for one in found), job.launchers.values())
            yield found
        roles.check(job.epochs_formed(), job.launchers.values())
        for machine in job.launchers.values():   # their workers end with them
            machine.kill()


def rounds(keelrun, trainer, whom, count, saves):
    """Yields what one_round() gives. `whom`: the first coordinators of jobs, or the heirs of one
    job, each of which had followed the one before."""
    if whom == "heir":
        yield from itertools.islice(one_job(keelrun, trainer, count + 1, saves), 1, None)
        return
    for _ in range(count):
        yield from one_job(keelrun, trainer, 1, saves)
