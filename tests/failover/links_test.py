#!/usr/bin/env python3
"""The coordinator's machine is cut off from the others, and comes back.

As root, in network namespaces; skips otherwise, and says why. Nobody is told that a connection is
closed, so that all depends on what is not heard.
"""
import argparse
import collections
import os
import sys
import time
import unittest

import machines

hosts = machines.hosts
ARGS = None
EPOCH = machines.EPOCH


class Job:
    """Hosts with one worker each; the first has the first board."""

    def __init__(self, lan, nnodes="2:3", has_lease=False, limits=()):
        self.lan, self.nnodes, self.has_lease, self.limits = lan, nnodes, has_lease, limits
        self.done_file = os.path.join(lan.folder, "done")
        self.endpoints = ",".join(f"{lan.address(number)}:{hosts.PORT}"
                                  for number in range(len(lan.hosts)))
        self.launchers = {}
        if has_lease:
            os.mkdir(os.path.join(lan.folder, "shared"))

    def start(self, number):
        lease = []
        if self.has_lease:
            self.join_lease(number)
            lease = [f"--lease={self.lease_of(number)}"]
        self.launchers[number] = self.lan.start(number, [
            ARGS.keelrun, f"--nnodes={self.nnodes}", "--nproc-per-node=1", "--rdzv-backend=c10d",
            "--rdzv-id=links", f"--rdzv-endpoint={self.endpoints}", *lease, *self.limits,
            f"--rdzv-conf={machines.CONF}", "--max-restarts=20", "--no-python", ARGS.survivor,
            self.done_file])

    def lease_of(self, number):
        """The shared directory, as that host sees it."""
        return os.path.join(self.lan.folder, f"lease-of-{number}")

    def cut(self, number):
        """The host reaches neither the others nor the shared directory."""
        self.lan.cut(number)
        os.unlink(self.lease_of(number))

    def join_lease(self, number):
        os.symlink(os.path.join(self.lan.folder, "shared"), self.lease_of(number))

    def join(self, number):
        self.join_lease(number)
        self.lan.join(number)

    def whole(self, world, numbers, since=None):
        """The number of the epoch of that size that these hosts are in next, by host."""
        return {number: int(self.launchers[number].wait_for(
            EPOCH.format(world), (since or {}).get(number, 0))[1]) for number in numbers}

    def marks(self):
        return {number: launcher.mark() for number, launcher in self.launchers.items()}

    def finish(self):
        with open(self.done_file, "w", encoding="utf-8"):
            pass
        return [launcher.end() for launcher in self.launchers.values()]

    def epochs_formed(self):
        return collections.Counter(
            found[1] for launcher in self.launchers.values()
            for found in map(machines.FORMED.search, launcher.lines) if found)

    def text(self):
        return "\n".join(launcher.text() for launcher in self.launchers.values())


class Links(unittest.TestCase):
    def test_a_coordinator_that_is_cut_off_follows_once_it_is_back(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            for number in range(3):
                job.start(number)
            first = job.whole(3, range(3))
            since = job.marks()
            lan.cut(0)
            second = job.whole(2, (1, 2), since)
            self.assertEqual(second[1], second[2])
            self.assertGreater(second[1], first[1])
            since = job.marks()
            lan.join(0)
            third = job.whole(3, range(3), since)
            self.assertEqual(len(set(third.values())), 1, job.text())
            self.assertTrue(job.launchers[0].find(" board-(left|followed) "), job.text())
            self.assertEqual(job.finish(), [0, 0, 0], job.text())
            self.assertEqual(set(job.epochs_formed().values()), {1}, job.text())

    def test_a_board_that_nobody_else_reaches_forms_nothing(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            for number in range(3):
                job.start(number)
            job.whole(3, range(3))
            since = job.marks()
            for number in range(3):
                lan.cut(number)
            job.launchers[0].wait_for(" host-lost ", since[0])
            for number in range(3):
                lan.join(number)
            job.whole(3, range(3), since)
            self.assertEqual(job.finish(), [0, 0, 0], job.text())
            self.assertEqual(set(job.epochs_formed().values()), {1}, job.text())


class Lease(unittest.TestCase):
    def check(self, number):
        """Of two hosts that one is cut off, and the other goes on alone."""
        with hosts.Lan(2) as lan:
            job = Job(lan, nnodes="1:2", has_lease=True)
            for host in range(2):
                job.start(host)
            job.whole(2, range(2))
            for launcher in job.launchers.values():
                launcher.wait_for(" lease-shared ")
            since = job.marks()
            began = time.monotonic()
            job.cut(number)
            job.whole(1, [1 - number], since)
            print(f"host {1 - number} alone after {time.monotonic() - began:.2f} s")
            since = job.marks()
            job.join(number)
            job.whole(2, range(2), since)
            self.assertEqual(job.finish(), [0, 0], job.text())
            self.assertEqual(set(job.epochs_formed().values()), {1}, job.text())

    def test_the_other_goes_on_when_the_coordinator_is_cut_off(self):
        self.check(0)

    def test_the_coordinator_goes_on_when_the_other_is_cut_off(self):
        self.check(1)

    def test_without_a_lease_the_cure_is_named(self):
        with hosts.Lan(2) as lan:
            job = Job(lan, nnodes="1:2", limits=("--store-limit=8s",))
            for host in range(2):
                job.start(host)
            job.whole(2, range(2))
            lan.cut(0)
            self.assertEqual(job.launchers[1].end(), 76, job.text())
            self.assertTrue(job.launchers[1].find(r"a lease \(--lease\) would let"), job.text())
            lan.join(0)
            with open(job.done_file, "w", encoding="utf-8"):
                pass
            self.assertEqual(job.launchers[0].end(), 0, job.text())


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--survivor", required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    unittest.main(argv=[__file__, *rest])


if __name__ == "__main__":
    main()
