#!/usr/bin/env python3
"""Whole training jobs on several hosts that are killed, cut off, stopped, added and misconfigured.

Whatever happens, the last line is that of a quiet run of one worker alone: the same losses, the
same state, to the bit. All hosts save in one directory. As root, in network namespaces; skips
otherwise, and says why.

Namespaces share one machine, so workers of two of them could read each other's memory:
--read-memory-from=0 sends everything over the wire, 1 reads whatever can be read.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import unittest

import hosts
import marked

ARGS = None
STEPS = 200
# Of several hosts; the job that all worlds below are part of ends fast once it has FULL workers.
FULL = 6
PAUSE = "500ms"
TRAIN = [f"--steps={STEPS}", "--model=gpt", "--log-every=0"]
REFUSED, LOST, SAVED = 78, 76, 75


class Job:
    """Hosts 0 to 3 of a Lan, of which the first has the store."""

    def __init__(self, lan, *train, nnodes="1:4"):
        self.lan, self.nnodes = lan, nnodes
        self.directory = os.path.join(lan.folder, "checkpoints")
        self.train = [*TRAIN, f"--checkpoint-dir={self.directory}", f"--full-world={FULL}",
                      f"--pause={PAUSE}", *train]
        self.launchers = {}

    def start(self, number, *train, workers=1, nnodes=None, keelrun=()):
        words = hosts.keelrun_words(self.lan, number, ARGS.keelrun, nnodes=nnodes or self.nnodes,
                                    workers=workers, job="train")
        self.launchers[number] = self.lan.start(
            number, [*words, *keelrun, ARGS.trainer, *self.train, *train])
        return self.launchers[number]

    def mark(self):
        return {number: launcher.mark() for number, launcher in self.launchers.items()}

    def step(self, number, world, since=0):
        """(step, rank, pid) of the first step that a worker of that host made among so many."""
        pattern = rf"^step (\d+) rank (\d+) of {world} pid (\d+) "
        return tuple(map(int, self.launchers[number].wait_for(pattern, since).groups()))

    def world(self, world, numbers, since=None):
        for number in numbers:
            self.step(number, world, (since or {}).get(number, 0))

    def hurry(self):
        """The last host brings what is missing: from here on nobody pauses."""
        pids = self.pids()
        self.start(3, workers=FULL - len(pids))
        self.world(FULL, [3])

    def pids(self):
        """Of the workers that run."""
        return [pid for pid in marked.marked(*self.lan.mark)
                if os.path.basename(marked.command_line(pid).split(" ")[0]) ==
                os.path.basename(ARGS.trainer)]

    def ends(self, numbers):
        return {number: self.launchers[number].end() for number in numbers}

    def lines(self, pattern):
        return [line for launcher in self.launchers.values() for line in launcher.lines
                if re.match(pattern, line)]

    def text(self):
        return "\n".join(f"{launcher.name}| {line}" for launcher in self.launchers.values()
                         for line in launcher.lines if not line.startswith("step "))


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        alone = subprocess.run([ARGS.trainer, *TRAIN], capture_output=True, text=True, check=True,
                               timeout=hosts.HANG_LIMIT_S)
        cls.alone = alone.stdout.splitlines()[-1]

    def check_end(self, job, numbers):
        self.assertEqual(job.ends(numbers), dict.fromkeys(numbers, 0), job.text())
        self.assertIn(f"final step={STEPS} ", self.alone)
        self.assertEqual(job.lines("final "), [self.alone])

    def test_hosts_join_and_workers_die_on_each(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=0")
            job.start(0)
            job.step(0, 1)
            job.start(1, workers=2)
            self.assertGreater(job.step(1, 3)[0], 1)   # it received what the other had made
            job.start(2)
            self.assertGreater(job.step(2, 4)[0], 1)
            job.world(4, (0, 1, 2))
            since = job.mark()
            job.launchers[1].process.send_signal(signal.SIGUSR2)
            job.launchers[0].wait_for(" save-begins ", since[0])
            job.launchers[0].wait_for(" checkpoint step=", since[0])
            for number in range(3):
                since = job.mark()
                marked.kill(job.step(number, 4, since[number])[2])
                # Its successor may be there before the others have made a step without it.
                job.launchers[number].wait_for(" worker-died ", since[number])
                job.world(4, range(3), job.mark())
            job.hurry()
            self.check_end(job, range(4))

    def test_hosts_are_cut_off_and_killed_and_come_back(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=0")
            for number in range(3):
                job.start(number)
            job.world(3, range(3))
            since = job.mark()
            lan.cut(2)
            job.world(2, (0, 1), since)
            since = job.mark()
            lan.join(2)
            job.world(3, range(3), since)
            since = job.mark()
            job.launchers[1].kill()
            job.world(2, (0, 2), since)
            since = job.mark()
            job.start(1)
            job.world(3, range(3), {**since, 1: 0})
            job.hurry()
            self.check_end(job, range(4))

    def test_the_host_of_the_store_is_killed_and_comes_back(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=1")
            for number in range(3):
                job.start(number)
            job.world(3, range(3))
            since = job.mark()
            job.launchers[0].kill()
            job.start(0)
            for number in (1, 2):
                job.launchers[number].wait_for(" store-reached", since[number])
            self.assertGreater(job.step(0, 3)[0], 1)
            job.world(3, (1, 2), job.mark())
            job.hurry()
            self.check_end(job, range(4))

    def test_without_the_store_s_machine_the_others_save_and_end(self):
        """It says no goodbye: no connection is closed, and nobody tells that its worker is gone."""
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=0")
            words = {"keelrun": ["--store-limit=3s", "--shutdown-timeout=15s"]}
            for number in range(3):
                job.start(number, **words)
            job.world(3, range(3))
            lan.cut(0)
            self.assertEqual(job.ends((1, 2)), {1: LOST, 2: LOST}, job.text())
            job.launchers[0].kill()
            lan.join(0)
            saved = job.lines(".* checkpoint step=")
            self.assertTrue(saved, job.text())
            for number in range(3):
                job.launchers[number] = job.start(number, "--pause=0")
            self.check_end(job, range(3))
            self.assertEqual(len(job.lines("resumed step=")), 1)

    def test_a_host_that_is_cut_off_saves_alone_when_it_is_stopped(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=0")
            for number in range(3):
                job.start(number, keelrun=["--shutdown-timeout=15s"])
            job.world(3, range(3))
            since = job.mark()
            lan.cut(2)
            job.launchers[2].process.terminate()
            job.world(2, (0, 1), since)
            self.assertEqual(job.ends([2]), {2: SAVED}, job.text())
            job.hurry()
            self.check_end(job, (0, 1, 3))

    def test_hosts_are_stopped_and_others_go_on_from_what_they_saved(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=1", "--save-every=10")
            for number in range(3):
                job.start(number, workers=1 + number % 2)
            job.world(4, range(3))
            since = job.mark()
            job.launchers[1].process.terminate()
            self.assertEqual(job.ends([1]), {1: SAVED}, job.text())
            job.world(2, (0, 2), since)
            since = job.mark()
            job.launchers[2].process.terminate()
            job.launchers[0].process.terminate()
            self.assertEqual(job.ends((0, 2)), {0: SAVED, 2: SAVED}, job.text())
            job.launchers[1] = job.start(1, "--pause=0", "--read-memory-from=0", workers=3,
                                         nnodes=2)
            job.launchers[0] = job.start(0, "--pause=0", "--read-memory-from=0", nnodes=2)
            self.check_end(job, range(2))
            resumed = job.lines("resumed step=")
            self.assertEqual(len(resumed), 1, resumed)
            self.assertGreater(int(re.search(r"step=(\d+)", resumed[0])[1]), 1)

    def test_a_host_with_other_options_is_refused_and_the_others_go_on(self):
        with hosts.Lan(4) as lan:
            job = Job(lan, "--read-memory-from=0", "--pause=1s")   # each refusal takes steps
            job.start(0)
            job.step(0, 1)
            elsewhere = os.path.join(lan.folder, "elsewhere")
            for options, why in ((["--lanes=4"], "'lanes=4'"),
                                 (["--seed=3"], "'seed=3'"),
                                 (["--lr=0.5"], "'rate=0.500000'"),
                                 (["--checkpoint-dir="], "--checkpoint-dir is none in rank 1"),
                                 (["--evaluate-every=5"], "evaluation is every_5_"),
                                 ([f"--checkpoint-dir={elsewhere}"],
                                  f"the --checkpoint-dir {elsewhere} of this host is not the")):
                launcher = job.start(1, *options)
                self.assertEqual(job.ends([1]), {1: REFUSED}, job.text())
                self.assertIn(why, launcher.text())
                job.world(1, [0], job.mark())
            job.start(1)
            job.world(2, [0, 1])
            job.hurry()
            self.check_end(job, (0, 1, 3))

    def test_a_job_does_not_begin_with_hosts_that_save_elsewhere(self):
        for options, why in ((["--checkpoint-dir="], "--checkpoint-dir is none in rank 1"),
                             (["--checkpoint-dir=elsewhere"], "is not the directory that"),
                             (["--init-from=weights"], "--init-from is given in rank 1")):
            with self.subTest(options=options), hosts.Lan(2) as lan:
                job = Job(lan, "--pause=0", nnodes=2)
                job.start(1, *options)
                job.start(0)
                self.assertEqual(job.ends([1]), {1: REFUSED}, job.text())
                self.assertIn(why, job.launchers[1].text())
                job.start(1)   # the other one waits for it
                self.check_end(job, range(2))

    def test_how_to_save_is_for_the_first_host_to_say(self):
        with hosts.Lan(4) as lan:
            job = Job(lan)
            job.start(0, "--save-every=4", "--codec=zstd", "--load-threads=0")
            job.start(1, "--save-every=3", "--read-memory-from=0")
            job.launchers[1].wait_for("save-options-differ .*here=.--save-every 3, --codec planes")
            job.world(2, range(2))
            # Of which both say that they have written their share.
            job.launchers[0].wait_for(" checkpoint step=", job.mark()[0])
            self.assertTrue(job.lines(".* save-begins step=4 why=.every 4 steps"), job.text())
            job.hurry()
            self.check_end(job, (0, 1, 3))


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="model_train")
    ARGS, rest = parser.parse_known_args()
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
