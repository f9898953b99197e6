#!/usr/bin/env python3
"""Whole jobs whose coordinator leaves, dies, stands still or comes back: the others go on.

Promises   whoever keeps the board may go, and whoever takes the role may go next. No epoch's number
           is formed twice, no step is lost, and the results are those of a quiet run, to the bit.
Does not   measure: bench/elastic does.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import unittest

import checks
import machines
import marked

ARGS = None
SAVED, NOT_SAVED = checks.SAVED, 77   # foreign programs save nothing that a launcher could know of
HASTY = machines.CONF + ",join_timeout=20"
# Of two dollars launchers leave one, as they take $local_rank for a word of theirs.
SHELL = ["/bin/sh", "-c", "echo main $RANK of $WORLD_SIZE restarts $TORCHELASTIC_RESTART_COUNT "
                          "pid $$$$; exec sleep 1000"]
MAIN = r"^main (\d+) of {} restarts (\d+) pid (\d+)"
SURVIVOR = r"^epoch (\d+) rank (\d+) of {} pid (\d+) count (\d+)"


def survivors(nnodes="2:3", **more):
    """A job of workers that keep what they have, and end once they are told to."""
    job = machines.Job(ARGS.keelrun, [], nnodes, **more)
    job.command = [ARGS.survivor, job.done_file]
    return job


def training(nnodes="2:3", steps=1000000):
    job = machines.Job(ARGS.keelrun, [], nnodes)
    job.command = train_words(job.folder, steps)
    return job


def train_words(folder, steps):
    return [ARGS.trainer, f"--steps={steps}", "--log-every=1", "--model.width=16",
            f"--checkpoint-dir={os.path.join(folder, 'checkpoints')}"]


def quiet_run(steps):
    """The losses as text, by step, and the last line of one worker alone."""
    done = subprocess.run([ARGS.trainer, f"--steps={steps}", "--log-every=1", "--model.width=16"],
                          capture_output=True, text=True, check=True,
                          timeout=machines.HANG_LIMIT_S + steps / 20)
    losses = {int(found[1]): found[2] for line in done.stderr.splitlines()
              if (found := machines.STEP.search(line))}
    return losses, done.stdout.splitlines()[-1]


def free_ports(count):
    """So many in a row."""
    ports = []
    while len(ports) < count:
        port = machines.free_port()
        ports = [*ports, port] if ports and port == ports[-1] + 1 else [port]
    return ports


def board_of(machine):
    """The address of the board that it has opened."""
    return machine.wait_for(r" board-opened term=1 address=(\S+) ")[1]


class Case(checks.Checks, unittest.TestCase):
    def check_as_alone(self, job):
        """The job was saved; goes on to an end that is not far, and ends as if nothing had been."""
        last = int(re.search(r" checkpoint step=(\d+) ", job.lines(" checkpoint step=")[-1])[1])
        steps = last + 10
        job.machines.clear()
        for number in (1, 2, 3):
            job.start(number, train_words(job.folder, steps))
        self.assertEqual(set(job.ends().values()), {0}, job.text())
        losses, line = quiet_run(steps)
        self.assertEqual(job.lines(r"^final "), [line])
        for step, told in job.steps().items():
            self.assertEqual(set(told), {losses[step]}, f"step {step}")

    def mains(self, job, world, since):
        """What each foreign worker printed in the next epoch, once: {host: (count of restarts,
        pid)}."""
        for number, machine in job.machines.items():
            machine.wait_for(MAIN.format(world), since.get(number, 0))
        found = [(number, int(one[2]), int(one[3])) for number, machine in job.machines.items()
                 for line in machine.lines[since.get(number, 0):]
                 if (one := re.search(MAIN.format(world), line))]
        self.assertEqual(len(found), world, job.text())
        return {number: (count, pid) for number, count, pid in found}

    def counts(self, job, world, since):
        return [count for count, _ in self.mains(job, world, since).values()]


class Leaving(Case):
    def test_hand_overs_in_a_row_lose_no_step(self):
        with training() as job:
            job.start_all()
            job.go_on()
            for newcomer in (4, 5, 6):
                self.take_over(job, "leave", 2)
                job.go_on()
                self.join(job, newcomer, 3)
                job.go_on()
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.check_epochs(job)
            self.check_steps(job)

    def test_the_others_of_a_hand_over_keep_their_processes(self):
        with survivors() as job:
            job.start_all()
            before = self.pids(job, SURVIVOR.format(3))
            gone = self.take_over(job, "leave", 2)
            del before[gone.number]
            self.assertEqual(self.pids(job, SURVIVOR.format(2)), before, job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    @staticmethod
    def pids(job, pattern):
        return {number: int(machine.wait_for(pattern)[3])
                for number, machine in job.machines.items()}

    def test_foreign_workers_are_restarted_once(self):
        with machines.Job(ARGS.keelrun, SHELL) as job:
            job.start_all()
            restarts = 0
            for newcomer in (4, 5):
                since = job.marks()
                self.take_over(job, "leave", 2, NOT_SAVED)
                counts = self.counts(job, 2, since)
                self.assertGreaterEqual(min(counts), restarts)
                restarts = max(counts)
                self.join(job, newcomer, 3)
            self.assertEqual(set(job.stop().values()), {NOT_SAVED}, job.text())
            self.check_epochs(job)


class Dying(Case):
    def test_each_heir_in_turn_is_killed_and_the_results_are_the_same(self):
        with training() as job:
            job.start_all()
            job.go_on()
            for newcomer in (4, 5, 6):
                self.take_over(job, "kill", 2)
                job.go_on()
                self.join(job, newcomer, 3)
                job.go_on()
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.check_epochs(job)
            self.check_steps(job, may_miss=6)
            self.check_as_alone(job)


class Losing(Case):
    def test_either_of_two_hosts_is_killed(self):
        for victim in (1, 2):
            with self.subTest(victim=victim), survivors("1:2") as job:
                job.start_all(2)
                since = job.marks()
                job.drop(job.machines[victim]).kill()
                job.whole(1, since)
                self.join(job, 3, 2)
                self.assertEqual(set(job.finish().values()), {0}, job.text())
                self.check_epochs(job)

    def test_restarts_are_not_forgotten(self):
        with machines.Job(ARGS.keelrun, SHELL) as job:
            job.start_all()
            begun, since = self.mains(job, 3, {}), job.marks()
            marked.kill(begun[2][1])
            self.assertEqual(self.counts(job, 3, since), [1, 1, 1], job.text())
            since = job.marks()
            self.take_over(job, "kill", 2)
            second = self.mains(job, 2, since)
            most = max(count for count, _ in second.values())
            self.assertGreaterEqual(min(count for count, _ in second.values()), 1, job.text())
            since = job.marks()
            marked.kill(second[2][1])
            self.assertGreater(min(self.counts(job, 2, since)), most, job.text())
            self.assertEqual(set(job.stop().values()), {NOT_SAVED}, job.text())
            self.check_epochs(job)


class Stopping(Case):
    def test_a_stop_outlives_who_decided_it(self):
        with training("3") as job:
            job.start_all()
            job.go_on()
            gone = job.drop(job.coordinator())
            other = job.machines[2]
            job.machines[3].send(signal.SIGTERM)
            other.wait_for(" job-stops ")
            gone.kill()
            self.assertNotIn(0, job.ends().values(), job.text())
            self.check_epochs(job)

    def test_nobody_waits_for_ever_for_a_stop_that_died_with_who_decided_it(self):
        with survivors("3") as job:
            for number in (1, 2, 3):
                job.start(number, conf=HASTY)
            job.whole(3)
            gone = job.drop(job.coordinator())
            job.machines[3].send(signal.SIGTERM)
            gone.wait_for(" stop-decided ")
            gone.kill()
            self.assertNotIn(0, job.ends().values(), job.text())
            self.check_epochs(job)


class ComingBack(Case):
    def test_the_old_machine_joins_the_job_that_it_began(self):
        with survivors() as job:
            job.start_all()
            self.assertEqual(self.take_over(job, "kill", 2).number, 1)
            back = self.join(job, 1, 3)
            # It began a board of its own at the endpoint, and left that, or found the other first.
            self.assertTrue(back.find(" board-(left|followed) "), job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_without_other_endpoints_the_old_machine_is_told(self):
        with survivors() as job:
            endpoint = f"127.0.0.1:{job.port}"
            for number in (1, 2, 3):
                job.start(number, endpoints=endpoint)
            job.whole(3)
            self.take_over(job, "kill", 2)
            back = self.join(job, 1, 3, endpoints=endpoint)
            self.assertTrue(back.find(" board-left "), job.text())
            self.assertEqual(len(job.lines(" endpoint-told ")), 1, job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_a_newcomer_knows_one_host_that_does_not_coordinate(self):
        with survivors("2:4") as job:
            job.start_all()
            self.join(job, 4, 4, endpoints=f"127.0.0.3:{job.port}")
            self.take_over(job, "kill", 3)
            other = next(number for number, machine in job.machines.items()
                         if machine is not job.coordinator())
            self.join(job, 5, 4, endpoints=f"127.0.0.{other}:{job.port}")
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_a_coordinator_that_stood_still_follows(self):
        with survivors() as job:
            job.start_all()
            still = self.stand_still(job)
            self.assertTrue(still.find(" board-(left|followed) "), job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)


class Directory(Case):
    """Hosts that meet in a directory; none of them is named anywhere."""

    def test_hosts_begin_lose_their_coordinator_and_take_in_others(self):
        with survivors(directory=True) as job:
            job.start_all()
            self.take_over(job, "kill", 2)
            self.join(job, 4, 3)
            self.take_over(job, "leave", 2)
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_a_job_that_was_killed_begins_again_at_once(self):
        with survivors(directory=True) as job:
            job.start_all(2)
            for machine in list(job.machines.values()):
                job.drop(machine).kill()
            job.start_all(2)
            self.assertEqual(set(job.finish().values()), {0}, job.text())

    # The lease gives the second run's first epoch a number above those of the first run.
    def test_a_run_that_shall_begin_anew_does_not_go_on_from_the_one_before(self):
        with survivors("1:2", directory=True) as job:
            command = [ARGS.trainer, "--steps=20",
                       "--checkpoint-dir=" + os.path.join(job.folder, "checkpoints")]
            self.assertEqual(job.start(1, command).end(), 0, job.text())
            anew = job.start(2, [*command, "--steps=30", "--no-resume"])
            self.assertEqual(anew.end(), 78, job.text())
            self.assertFalse(anew.find("resumed step="), job.text())
            self.assertEqual(job.start(3, [*command, "--steps=30"]).end(), 0, job.text())

    # Its first epoch is the third one that the lease knows, and the next one goes on.
    def test_a_run_that_began_anew_goes_on_from_its_own_checkpoints(self):
        with survivors("1:2", directory=True) as job:
            for number in (1, 2):
                self.assertEqual(job.start(number, [ARGS.trainer, "--steps=5"]).end(), 0)
            anew = job.start(3, [*train_words(job.folder, 1000000), "--no-resume",
                                 "--save-every=50"])
            anew.wait_for(" checkpoint step=")
            for pid in set(marked.marked(*anew.mark_of_all)) - {anew.process.pid}:
                marked.kill(pid)
            anew.wait_for("resumed step=")
            anew.send(signal.SIGTERM)
            self.assertEqual(anew.end(), 75, job.text())

    def test_what_is_no_shared_directory_is_refused(self):
        for name, words in (("missing", "is not there: mount it"),
                            ("file", "is not a directory")):
            with survivors(directory=True) as job:
                with open(os.path.join(job.folder, "file"), "w", encoding="utf-8"):
                    pass
                job.directory = os.path.join(job.folder, name)
                machine = job.start(1)
                self.assertEqual(machine.end(), 1, job.text())
                self.assertTrue(machine.find(words), job.text())


class Beside(Case):
    """Two jobs at one endpoint, of which the first keeps its store there."""

    def second(self, first, nnodes="1:4"):
        job = survivors(nnodes, name="second", port=first.port)
        self.endpoint = f"127.0.0.1:{first.port}"
        for number in (1, 2, 3):
            job.start(number, endpoints=self.endpoint)
        job.whole(3)
        return job

    def end(self, job):
        self.assertEqual(set(job.finish().values()), {0}, job.text())
        self.check_epochs(job)

    def test_the_second_one_works_and_is_found_there_after_a_takeover(self):
        with survivors("1:1") as first:
            first.start(1)
            first.whole(1)
            with self.second(first) as job:
                self.take_over(job, "kill", 2)
                self.join(job, 4, 3, endpoints=self.endpoint)
                self.end(job)
            self.end(first)

    def test_it_is_found_there_when_the_first_one_has_ended_and_a_third_one_is_refused(self):
        with survivors("1:1") as first:
            first.start(1)
            first.whole(1)
            with self.second(first) as job:
                self.end(first)
                self.join(job, 4, 4, endpoints=self.endpoint)
                with survivors("1:1", name="third", port=first.port) as third:
                    for number in (1, 5):
                        machine = third.start(number, endpoints=self.endpoint)
                        self.assertEqual(machine.end(), 1, third.text())
                        words = "a launcher of another job than 'third' listens at the endpoint"
                        self.assertTrue(machine.find(words), third.text())
                self.end(job)

    def of_range(self, name, ports, port=None):
        """A job of one host at 127.0.0.1, whose launcher takes the first ports that are free."""
        options = ("--max-restarts=20", f"--port-range={ports[0]}-{ports[-1]}")
        return machines.Job(ARGS.keelrun, SHELL, "1:2", options, name=name, port=port)

    def runs_once(self, job, endpoint):
        """A start of that job, whose worker ends at once."""
        machine = job.start(1, ["true"], endpoints=endpoint, conf=HASTY)
        self.assertEqual(machine.end(), 0, job.text())
        return machine

    def test_it_begins_again_where_another_job_has_its_ports_by_now(self):
        ports = free_ports(20)
        with self.of_range("first", ports) as first:
            endpoint = f"127.0.0.1:{first.port}"
            first.start(1, endpoints=endpoint)
            first.whole(1)
            with self.of_range("second", ports, first.port) as job, \
                    self.of_range("third", ports, first.port) as third:
                before = board_of(self.runs_once(job, endpoint))
                machine = third.start(1, endpoints=endpoint)
                third.whole(1)
                self.assertEqual(board_of(machine), before, third.text())
                self.runs_once(job, endpoint)
                self.assertEqual(set(third.stop().values()), {NOT_SAVED}, third.text())
            self.assertEqual(set(first.stop().values()), {NOT_SAVED}, first.text())

    def test_it_begins_again_where_its_own_supervisor_has_the_port_by_now(self):
        ports = free_ports(20)
        with self.of_range("first", ports) as first:
            endpoint = f"127.0.0.1:{first.port}"
            machine = first.start(1, endpoints=endpoint)
            pid = int(machine.wait_for(MAIN.format(1))[3])
            with self.of_range("second", ports, first.port) as job:
                before = board_of(self.runs_once(job, endpoint))
                os.kill(pid, signal.SIGKILL)   # the next store of the first one's takes a port
                machine.wait_for(r"^main 0 of 1 restarts 1 ")
                self.assertNotEqual(board_of(self.runs_once(job, endpoint)), before, job.text())
            self.assertEqual(set(first.stop().values()), {NOT_SAVED}, first.text())

    def test_one_that_may_keep_no_board_waits_for_one_that_may(self):
        with survivors("1:1") as first, survivors("2:2", name="second", port=first.port) as job:
            first.start(1)
            first.whole(1)
            endpoint = f"127.0.0.1:{first.port}"
            waits = job.start(2, endpoints=endpoint, conf=machines.CONF + ",is_host=0")
            waits.wait_for("the launcher that is to keep the one of job 'second' has not come")
            job.start(3, endpoints=endpoint)
            job.whole(2)
            self.end(job)
            self.end(first)


class Strangers(Case):
    JUNK = (b"\0" * 64, b"GET / HTTP/1.0\r\n\r\n", b"x" * 100000, b"ask \n", b"ask failover\n" * 99,
            b"hello 0 0000000000000000\n", os.urandom(4096))

    def test_garbage_and_silence_at_peer_ports_do_no_harm(self):
        with survivors() as job:
            job.start_all()
            since = job.marks()
            silent = []
            try:
                for number in (2, 3):
                    address = (f"127.0.0.{number}", job.port)
                    self.throw_junk(address)
                    silent += [socket.create_connection(address, 5) for _ in range(200)]
                for number, machine in job.machines.items():
                    self.assertIsNone(machine.find(" epoch epoch=", since[number]), job.text())
                self.take_over(job, "kill", 2)
                for number in job.machines:
                    self.throw_junk((f"127.0.0.{number}", job.port))
                self.join(job, 4, 3)
                self.assertEqual(set(job.finish().values()), {0}, job.text())
            finally:
                for one in silent:
                    one.close()
            self.check_epochs(job)

    def throw_junk(self, address):
        for junk in self.JUNK:
            try:
                with socket.create_connection(address, 5) as one:
                    one.settimeout(0.2)
                    one.sendall(junk)
                    one.recv(100)
            except OSError:
                pass   # it was closed for that, as it may be


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--survivor", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="minimal_train")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest])


if __name__ == "__main__":
    main()
