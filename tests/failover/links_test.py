#!/usr/bin/env python3
"""The coordinator's machine is cut off from the others, and comes back.

As root, in network namespaces; skips otherwise, and says why. Nobody is told that a connection is
closed, so that all depends on what is not heard.
"""
import argparse
import collections
import os
import sys
import unittest

import machines

hosts = machines.hosts
ARGS = None
EPOCH = machines.EPOCH


class Job:
    """Three hosts with one worker each; the first has the first board."""

    def __init__(self, lan):
        self.lan = lan
        self.done_file = os.path.join(lan.folder, "done")
        self.endpoints = ",".join(f"{lan.address(number)}:{hosts.PORT}" for number in range(3))
        self.launchers = {}

    def start(self, number):
        self.launchers[number] = self.lan.start(number, [
            ARGS.keelrun, "--nnodes=2:3", "--nproc-per-node=1", "--rdzv-backend=c10d",
            "--rdzv-id=links", f"--rdzv-endpoint={self.endpoints}",
            f"--rdzv-conf={machines.CONF}", "--max-restarts=20", "--no-python", ARGS.survivor,
            self.done_file])

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
