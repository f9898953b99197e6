#!/usr/bin/env python3
"""Launchers on three hosts whose network and processes fail: the job goes on, in place.

Workers count steps and keep their count over epochs (tests/elastic/survivor.cc). As root, in
network namespaces; skips otherwise, and says why.
"""
import argparse
import os
import re
import subprocess
import sys
import unittest

import hosts
import marked

ARGS = None
PORT = hosts.PORT
EPOCH = r"epoch (\d+) rank (\d+) of {world} pid (\d+) count (\d+)"
GARBAGE = """
import os, socket
JUNK = (b"\\0" * 64, b"GET / HTTP/1.0\\r\\n\\r\\n", os.urandom(4096), b"x" * 100000,
        b"hello 0 {fake}\\n")
for port in ({ports}):
    for junk in JUNK:
        try:
            with socket.create_connection((HOST, port), 5) as s:
                s.sendall(junk)
                s.settimeout(0.3)
                s.recv(100)
        except OSError:
            pass
"""


class Job:
    """Three hosts of two workers, of which one host may be missing."""

    def __init__(self, lan, worker=None):
        self.lan, self.worker = lan, worker or [ARGS.survivor]
        self.done_file = os.path.join(lan.folder, "done")
        self.launchers = {}

    def start(self, number):
        words = hosts.keelrun_words(self.lan, number, ARGS.keelrun, nnodes="2:3", workers=2,
                                    job="net")
        self.launchers[number] = self.lan.start(number, [*words, *self.worker, self.done_file])
        return self.launchers[number]

    def start_all(self):
        for number in range(3):
            self.start(number)
        begun = {number: self.epoch(number, 6) for number in range(3)}
        for number in range(3):
            self.await_counts(number)
        return begun

    def await_counts(self, number):
        """Until both workers of that host have something to remember."""
        launcher, ranks, since = self.launchers[number], set(), 0
        while len(ranks) < 2:
            found = launcher.wait_for(r"rank (\d+) has counted to", since)
            since = next(n for n, line in enumerate(launcher.lines)
                         if n >= since and found.string == line) + 1
            ranks.add(found[1])

    def epoch(self, number, world, since=0, fresh=False):
        """(epoch, {pid: count}) once both workers of that host are in an epoch of that size. With
        `fresh`, of workers that began at 0."""
        launcher, pids = self.launchers[number], {}
        pattern = EPOCH.format(world=world)
        while len(pids) < 2:
            found = launcher.wait_for(pattern, since)
            since = next(n for n, line in enumerate(launcher.lines)
                         if n >= since and found.string == line) + 1
            pids[int(found[3])] = int(found[4])
            last = int(found[1])
        return last, pids

    def finish(self, numbers):
        with open(self.done_file, "w", encoding="utf-8"):
            pass
        return {number: self.launchers[number].end() for number in numbers}


class Hosts(unittest.TestCase):
    def check_kept(self, before, after):
        """The same processes, with their memory."""
        self.assertEqual(set(before[1]), set(after[1]))
        self.assertGreater(after[0], before[0])
        self.assertTrue(all(after[1][pid] > 0 for pid in after[1]), after)

    def test_a_host_that_is_cut_off_is_left_behind_and_comes_back(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            first = job.start_all()
            marks = {n: job.launchers[n].mark() for n in range(3)}
            lan.cut(2)
            second = {n: job.epoch(n, 4, marks[n]) for n in (0, 1)}
            for number in (0, 1):
                self.check_kept(first[number], second[number])
            marks = {n: job.launchers[n].mark() for n in range(3)}
            lan.join(2)
            third = {n: job.epoch(n, 6, marks[n]) for n in range(3)}
            for number in (0, 1):
                self.check_kept(second[number], third[number])
            # Fenced: what it took part in while away is nothing that the others know of.
            self.assertGreater(third[2][0], second[0][0])
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})

    def test_a_killed_launcher_is_left_behind_and_its_successor_joins(self):
        with hosts.Lan(3) as lan:
            self.lose_and_replace_a_launcher(lan)

    def lose_and_replace_a_launcher(self, lan):
        job = Job(lan)
        first = job.start_all()
        marks = {n: job.launchers[n].mark() for n in range(3)}
        job.launchers[1].kill()
        second = {n: job.epoch(n, 4, marks[n]) for n in (0, 2)}
        for number in (0, 2):
            self.check_kept(first[number], second[number])
        marks = {n: job.launchers[n].mark() for n in range(3)}
        job.start(1)
        for number in (0, 2):
            self.check_kept(second[number], job.epoch(number, 6, marks[number]))
        job.epoch(1, 6)
        self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})

    def test_the_host_of_the_store_is_killed_and_comes_back(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            first = job.start_all()
            marks = {n: job.launchers[n].mark() for n in range(3)}
            job.launchers[0].kill()
            job.start(0)
            for number in (1, 2):
                self.check_kept(first[number], job.epoch(number, 6, marks[number]))
            job.epoch(0, 6)
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})

    def test_loss_and_delay_disturb_nobody(self):
        with hosts.Lan(3) as lan:
            cannot = lan.disturb(1, "netem", "delay", "20ms", "10ms", "loss", "2%")
            if cannot:
                self.skipTest(cannot)
            job = Job(lan)
            first = job.start_all()
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})
            self.assertEqual({first[n][0] for n in range(3)}, {first[0][0]})

    def test_a_loss_is_survived_over_lines_that_lose_and_delay(self):
        with hosts.Lan(3) as lan:
            for number in range(3):
                cannot = lan.disturb(number, "netem", "delay", "20ms", "10ms", "loss", "1%")
                if cannot:
                    self.skipTest(cannot)
            self.lose_and_replace_a_launcher(lan)

    def test_a_loss_is_survived_over_thin_lines(self):
        with hosts.Lan(3) as lan:
            for number in range(3):
                # What does not fit into 50 ms of it is dropped.
                cannot = lan.disturb(number, "tbf", "rate", "400kbit", "burst", "4kb", "latency",
                                     "50ms")
                if cannot:
                    self.skipTest(cannot)
            self.lose_and_replace_a_launcher(lan)

    def test_who_outlives_the_launchers_is_found(self):
        lan = hosts.Lan(1)
        for _ in range(50):
            # Popen() comes back when exec() has closed its files: it is not over yet then.
            sleeper = subprocess.Popen(["sleep", "1000"], env=lan.environment())
            try:
                self.assertEqual(marked.await_none_marked(*lan.mark, limit_s=0.01),
                                 {sleeper.pid: "sleep 1000 "})
            finally:
                marked.kill(sleeper.pid)
                sleeper.wait()
            self.assertEqual(marked.await_none_marked(*lan.mark, hosts.HANG_LIMIT_S), {})
        lan.remove()
        for everybody in (1, 0, -1):
            self.assertRaises(ValueError, marked.kill, everybody)

    def test_training_on_several_hosts_ends_as_alone(self):
        if ARGS.trainer is None:
            self.skipTest("this build has no training program")
        train = [ARGS.trainer, "--steps=60", "--log-every=0"]
        alone = subprocess.run(train, capture_output=True, text=True, check=True,
                               timeout=hosts.HANG_LIMIT_S).stdout.splitlines()[-1]
        self.assertIn("final step=60 ", alone)
        self.assertIn(alone, self.lines_of_two_hosts(train))

    def test_plain_all_reduce_on_several_hosts_ends_with_the_same_parameters(self):
        if ARGS.allreduce is None:
            self.skipTest("this build has no training program")
        said = [re.search(r"rank=\d step=20 .*digest=(\w+)", line)
                for line in self.lines_of_two_hosts([ARGS.allreduce, "--steps=20"])]
        digests = [found[1] for found in said if found]
        self.assertEqual(len(digests), 4)
        self.assertEqual(len(set(digests)), 1)

    def lines_of_two_hosts(self, program):
        """What a job of two hosts with two workers each has printed."""
        with hosts.Lan(2) as lan:
            launchers = [lan.start(number, [
                ARGS.keelrun, "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
                "--rdzv-id=train", f"--rdzv-endpoint={lan.address(0)}:{PORT}",
                f"--rdzv-conf=join_timeout=60,is_host={int(number == 0)}", *program])
                for number in range(2)]
            self.assertEqual([launcher.end() for launcher in launchers], [0, 0],
                             "\n".join(launcher.text() for launcher in launchers))
            lines = [line for launcher in launchers for line in launcher.lines]
            # Nobody had to try twice.
            self.assertNotIn("epoch-broken", "\n".join(lines))
            return lines

    def test_garbage_on_the_ports_disturbs_nobody(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            first = job.start_all()
            marks = {n: job.launchers[n].mark() for n in range(3)}
            ports = lan.inside(0, "import re;print(*{int(l.split()[1].split(':')[1],16) for f in "
                                  "('tcp','tcp6') for l in open('/proc/net/'+f) "
                                  "if l.split()[3]=='0A'})").stdout.split()
            self.assertIn(str(PORT), ports)
            junk = GARBAGE.format(ports=",".join([*ports, ports[0]]), fake="0" * 16)
            for number in (0, 2):
                done = lan.inside(number, f"HOST = '{lan.address(0)}'\n{junk}")
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0},
                             job.launchers[0].text())
            for number in range(3):
                again = job.launchers[number].find(EPOCH.format(world=r"\d+"), marks[number])
                self.assertIsNone(again, f"a new epoch after {first}\n"
                                         f"{job.launchers[number].text()}")

    def test_garbage_on_a_control_link_ends_that_worker_alone(self):
        with hosts.Lan(3) as lan:
            # The first to make the folder speaks garbage, and stays; the others are survivors.
            hello = '{"type":"hello","version":1,"fingerprint":"none"}'
            junk = f"(echo '{hello}'; head -c 70000 /dev/urandom) >&$KEEL_CONTROL_FD"
            script = (f"if mkdir {lan.folder}/spoilt 2>/dev/null; then {junk}; exec sleep 1000; "
                      f'fi; exec {ARGS.survivor} "$0"')
            job = Job(lan, worker=["/bin/sh", "-c", script])
            job.start_all()
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})
            ended = [line for launcher in job.launchers.values() for line in launcher.lines
                     if "worker-died" in line]
            self.assertEqual(len(ended), 1, ended)

    def examine(self, lan, count):
        """What each host's doctor says: its exit code and its lines."""
        doctors = [lan.start(number, [
            ARGS.keelrun, "--doctor", "--doctor-limit=60s", f"--nnodes={count}",
            "--rdzv-backend=c10d", "--rdzv-id=doctor",
            f"--rdzv-endpoint={lan.address(0)}:{PORT}",
            f"--rdzv-conf=is_host={int(number == 0)}"]) for number in range(count)]
        return [(doctor.end(), "\n".join(doctor.lines)) for doctor in doctors]

    def test_the_doctor_names_the_interface_and_the_ports(self):
        with hosts.Lan(3) as lan:
            for code, text in self.examine(lan, 3):
                self.assertEqual(code, 0, text)
                self.assertRegex(text, r"OK   hosts +all 3 came: (?!.*rehearsal)")
                self.assertRegex(text, rf"OK   interface .* {lan.address(2)} \(eth0\)")
                self.assertRegex(text, r"OK   ports +all reach each other")
                self.assertRegex(text, r"OK   all-reduce +1 MiB among 3 hosts")

    def test_the_doctor_finds_who_cannot_reach_whom(self):
        with hosts.Lan(3) as lan:
            # Both reach the store's host, but not each other.
            hosts.ip("-n", lan.hosts[1], "route", "add", "unreachable", lan.address(2))
            for code, text in self.examine(lan, 3):
                self.assertEqual(code, 1, text)
                found = re.findall(r"FAIL ports +\S+ \((\d)\): cannot reach \S+ \((\d)\)", text)
                addresses = re.search(r"interface +(.*)", text)[1]
                self.assertEqual(len(found), 2, text)
                self.assertEqual(found[0], found[1][::-1], text)   # neither the other
                self.assertIn(lan.address(1), addresses)
                self.assertRegex(text, r"SKIP all-reduce +not tried")

    def test_a_stranger_at_our_store_is_no_member(self):
        with hosts.Lan(3) as lan:
            job = Job(lan)
            job.start_all()
            stranger = lan.start(2, [
                ARGS.keelrun, "--nnodes=2:3", "--rdzv-backend=c10d", "--rdzv-id=another",
                f"--rdzv-endpoint={lan.address(0)}:{PORT}",
                "--rdzv-conf=is_host=0,join_timeout=3", "--no-python", "/bin/true"])
            self.assertNotEqual(stranger.end(), 0, stranger.text())
            self.assertEqual(job.finish(range(3)), {0: 0, 1: 0, 2: 0})


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--survivor", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", type=os.path.abspath, help="minimal_train")
    parser.add_argument("--allreduce", type=os.path.abspath, help="allreduce_train")
    ARGS, rest = parser.parse_known_args()
    reason = hosts.why_not()
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
