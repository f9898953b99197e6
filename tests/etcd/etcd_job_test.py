#!/usr/bin/env python3
"""Whole jobs that meet in a real etcd cluster: any host and any member of the cluster may go.

Promises   no epoch's number is formed twice, no step is lost, what stays of the job goes on, and a
           job that is over leaves nothing but the number of its last term.
Does not   measure. Skips where there is no etcd.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../failover"))
sys.path.append(os.path.join(HERE, "../harness"))
import checks  # noqa: E402
import cluster  # noqa: E402
import jobs  # noqa: E402
import link  # noqa: E402
import machines  # noqa: E402
from free_port import free_port  # noqa: E402

ARGS = None
SAVED = checks.SAVED
LOST = 76
# The keys of a board vanish so long after the last who followed it (tools/keelrun/etcd_home.h),
# give or take what etcd takes to notice.
BOARD_TTL_S, NOTICED_S = 15, 15
BEAT_LIMIT_S = 3   # as machines.CONF has it
SURVIVOR = r"^epoch (\d+) rank (\d+) of {} pid (\d+) count (\d+)"
# Of two dollars launchers leave one, as they take $local_rank for a word of theirs.
SHELL = ["/bin/sh", "-c", "echo main $RANK of $WORLD_SIZE restarts $TORCHELASTIC_RESTART_COUNT "
                          "pid $$$$; exec sleep 1000"]


class Case(checks.Checks, unittest.TestCase):
    """Tests of one class share a cluster; each has a job of its own."""

    @classmethod
    def setUpClass(cls):
        why = cluster.why_not()
        if why:
            raise unittest.SkipTest(f"there is no cluster: {why}")
        cls.etcd = cluster.Cluster(3).__enter__()
        cls.addClassCleanup(cls.etcd.__exit__)

    def survivors(self, nnodes="2:3", **more):
        """A job of workers that keep what they have, and end once they are told to."""
        job = jobs.Job(ARGS.keelrun, self.etcd, [], nnodes, job=self.id(), **more)
        job.command = [ARGS.survivor, job.done_file]
        return job

    def training(self, nnodes="2:3"):
        job = jobs.Job(ARGS.keelrun, self.etcd, [], nnodes, job=self.id())
        job.command = [ARGS.trainer, "--steps=1000000", "--log-every=1", "--model.width=16",
                       f"--checkpoint-dir={os.path.join(job.folder, 'checkpoints')}"]
        return job

    def check_unbroken(self, job, since):
        for number, machine in job.machines.items():
            self.assertIsNone(machine.find(" epoch(-broken)? epoch=", since[number]), job.text())

    def keys_of(self, job, below=""):
        """What etcd holds of the job, but for the number of its last term."""
        prefix = f"keel/{job.job}/"
        return [key for key in self.etcd.keys(prefix + below) if key != prefix + "t/last"]

    def await_no_keys(self, job, limit_s, below=""):
        end = time.monotonic() + limit_s
        while (keys := self.keys_of(job, below)) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(keys, [])


class Meeting(Case):
    def test_a_job_runs_to_its_end_with_newcomers_and_leaves_nothing(self):
        with self.survivors("2:4") as job:
            job.start_all(3)
            self.assertGreater(len(self.keys_of(job)), 10)
            # One member of the cluster is enough to find it, and torchrun's other name will do.
            self.join(job, 4, 4, endpoints=job.cluster.endpoints().split(",")[1],
                      backend="etcd-v2")
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)
            self.assertEqual(self.keys_of(job), [])

    def test_a_name_can_be_used_again_at_once(self):
        for _ in range(3):
            with self.survivors("2") as job:
                job.start_all(2)
                self.assertEqual(set(job.finish().values()), {0}, job.text())

    def test_two_jobs_beside_each_other_meet_nobody_else(self):
        with self.survivors("2") as one, self.survivors("2") as other:
            other.job = one.job + "/t"   # the name of its folder would lie in the other's
            one.start_all(2)
            other.start_all(2)
            self.assertEqual(set(one.finish().values()), {0}, one.text())
            self.check_unbroken(other, other.marks())
            self.assertEqual(set(other.finish().values()), {0}, other.text())

    def test_a_dead_job_can_be_begun_again_at_once(self):
        with self.survivors("2") as job:
            job.start_all(2)
            for machine in list(job.machines.values()):
                job.drop(machine).kill()
            of_the_dead = job.epochs_formed()
            job.start_all(2)
            # If the coordinator still saw the other one vanish, what it wrote last says that its
            # own host runs the epoch. Then the next ones wait until that has ended for sure: 95 s.
            self.assertEqual(set(job.finish(limit_s=180).values()), {0}, job.text())
            self.check_epochs(job, of_the_dead)


class Vanishing(Case):
    def test_what_a_dead_job_leaves(self):
        with self.survivors("2") as job:
            job.start_all(2)
            for machine in job.machines.values():
                machine.kill()
            self.await_no_keys(job, BOARD_TTL_S + NOTICED_S)

    def test_the_board_of_a_dead_coordinator_while_the_job_goes_on(self):
        with self.survivors("1:2") as job:
            job.start_all(2)
            self.take_over(job, "kill", 1)
            self.await_no_keys(job, BOARD_TTL_S + NOTICED_S, "board-1/")
            self.assertEqual(set(job.finish().values()), {0}, job.text())


class Members(Case):
    """Those of the cluster go, while a job trains."""

    def test_whichever_goes_no_epoch_breaks_and_no_step_is_lost(self):
        with self.training() as job:
            job.start_all()
            job.go_on()
            since = job.marks()
            leader = self.etcd.leader()
            follower, other = [number for number in range(3) if number != leader]
            self.etcd.kill(follower)
            job.go_on()
            self.etcd.start(follower)
            self.etcd.await_ready(follower)
            self.etcd.send(other, signal.SIGSTOP)
            try:
                time.sleep(2 * BEAT_LIMIT_S)   # what would break breaks by then
            finally:
                self.etcd.send(other, signal.SIGCONT)
            job.go_on()
            leader = self.etcd.leader()
            self.etcd.kill(leader)
            time.sleep(2 * BEAT_LIMIT_S)
            job.go_on()
            self.check_unbroken(job, since)
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.etcd.start(leader)
            self.etcd.await_ready(leader)
            self.check_epochs(job)
            self.check_steps(job)
            # Where all were told to leave at once, the role moved; the former board has its time.
            self.await_no_keys(job, 20)


class Leaving(Case):
    def test_a_coordinator_that_is_told_to_leave_ends_alone(self):
        with self.training() as job:
            job.start_all()
            job.go_on()
            self.take_over(job, "leave", 2)
            job.go_on()
            self.join(job, 4, 3)
            job.go_on()
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.check_epochs(job)
            self.check_steps(job)

    def test_the_others_keep_their_processes(self):
        with self.survivors() as job:
            job.start_all()
            before = self.pids(job, SURVIVOR.format(3))
            gone = self.take_over(job, "leave", 2)
            del before[gone.number]
            self.assertEqual(self.pids(job, SURVIVOR.format(2)), before, job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())

    @staticmethod
    def pids(job, pattern):
        return {number: int(machine.wait_for(pattern)[3])
                for number, machine in job.machines.items()}


class Dying(Case):
    def test_coordinators_that_are_killed_in_a_row_lose_no_step(self):
        with self.training() as job:
            job.start_all()
            job.go_on()
            for newcomer in (4, 5):
                self.take_over(job, "kill", 2)
                job.go_on()
                self.join(job, newcomer, 3)
                job.go_on()
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.check_epochs(job)
            self.check_steps(job, may_miss=4)

    def test_of_two_hosts_either_one_is_killed(self):
        with self.survivors("1:2") as job:
            job.start_all(2)
            self.take_over(job, "kill", 1)
            self.join(job, 3, 2)
            since = job.marks()
            other = next(machine for machine in job.machines.values()
                         if machine is not job.coordinator())
            job.drop(other).kill()
            job.whole(1, since)
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_two_of_three_hosts_are_killed_at_once(self):
        with self.survivors("1:3") as job:
            job.start_all(3)
            gone = [job.drop(job.coordinator()), job.drop(next(iter(job.machines.values())))]
            since = job.marks()
            for machine in gone:
                machine.kill()
            job.whole(1, since)
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_foreign_workers_are_restarted(self):
        job = jobs.Job(ARGS.keelrun, self.etcd, SHELL, job=self.id())
        with job:
            job.start_all()
            since = job.marks()
            self.take_over(job, "kill", 2)
            for number, machine in job.machines.items():
                machine.wait_for(r"^main \d of 2 restarts", since[number])
            self.assertEqual(set(job.stop().values()), {77}, job.text())
            self.check_epochs(job)

    def test_restarts_stay_spent_where_nobody_is_left_but_a_host_that_waited(self):
        with jobs.Job(ARGS.keelrun, self.etcd, SHELL, "1:1", job=self.id()) as job:
            first = job.start(1)
            for count in range(2):
                found = first.wait_for(rf"^main 0 of 1 restarts {count} pid (\d+)")
                os.kill(int(found[1]), signal.SIGKILL)
            first.wait_for(r"^main 0 of 1 restarts 2 ")
            job.start(2).wait_for(" registered ")
            job.drop(first).kill()
            found = job.machines[2].wait_for(r"^main 0 of 1 restarts (\d+) ")
            self.assertEqual(found[1], "2", job.text())
            self.assertEqual(set(job.stop().values()), {77}, job.text())
            self.check_epochs(job)


class StandingStill(Case):
    def test_a_coordinator_that_stood_still_has_lost_its_role_and_follows(self):
        with self.survivors() as job:
            job.start_all()
            still = self.stand_still(job)
            self.assertTrue(still.find(" board-left "), job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)


class Soak(Case):
    """Coordinators and members of the cluster go by turns, --rounds times, under one job."""

    def test_whoever_goes_the_job_goes_on(self):
        with self.training() as job:
            job.start_all()
            for turn in range(ARGS.rounds):
                job.go_on()
                with self.subTest(turn=turn):
                    self.lose_member(turn)
                    self.take_over(job, "leave" if turn % 2 else "kill", 2)
                    job.go_on()
                    self.join(job, 4 + turn % machines.MOST, 3)
            job.go_on()
            self.assertEqual(set(job.stop().values()), {SAVED}, job.text())
            self.check_epochs(job)
            self.check_steps(job, may_miss=2 * ARGS.rounds)
            self.assertEqual(self.keys_of(job, f"board-{self.last_term(job)}/"), [])

    def lose_member(self, turn):
        """Of the cluster; every third time it is the leader. It comes back at once."""
        leader = self.etcd.leader()
        number = leader if turn % 3 == 2 else (leader + 1) % 3
        self.etcd.kill(number)
        self.etcd.start(number)
        self.etcd.await_ready(number)

    @staticmethod
    def last_term(job):
        return max(int(found[1]) for machine in job.started
                   for found in map(jobs.OPENED.search, machine.lines) if found)


class CutOff(Case):
    def test_a_coordinator_that_cannot_reach_etcd_loses_its_role_and_follows_later(self):
        with link.Link(self.etcd) as own, self.survivors() as job:
            first = job.start(1, endpoints=own.endpoints())
            first.wait_for(" board-opened term=1 ")
            for number in (2, 3):
                job.start(number)
            job.whole(3)
            job.drop(first)
            since = job.marks()
            own.cut()
            job.whole(2, since)   # it lives, and is reached by all, but its claim has run out
            job.machines[1] = first
            since = {**job.marks(), 1: first.mark()}
            own.mend()
            job.whole(3, since)
            self.assertTrue(first.find(" board-left term=1 "), job.text())
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_a_coordinator_whose_claim_ran_out_breaks_nothing_if_it_is_back_in_time(self):
        with link.Link(self.etcd) as own, self.survivors() as job:
            first = job.start(1, endpoints=own.endpoints())
            first.wait_for(" board-opened term=1 ")
            for number in (2, 3):
                job.start(number)
            job.whole(3)
            first.wait_for(" epoch-formed ")   # others may have the epoch before it has the answer
            own.cut()
            end = time.monotonic() + machines.HANG_LIMIT_S
            while not job.lines(" board-opened term=2 ") and time.monotonic() < end:
                time.sleep(0.01)
            own.mend()
            for machine in job.machines.values():
                machine.wait_for(r" epoch epoch=1 .*reason=\"epoch 1 goes on in a new store")
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.assertEqual(job.lines(" epoch-broken "), [], job.text())
            self.assertEqual(job.epochs_formed(), {1: 1})

    def test_what_they_run_is_known_to_the_next_coordinator_but_one(self):
        with link.Link(self.etcd) as own, self.survivors("1:3") as job:
            for number in (1, 2):
                job.start(number, endpoints=own.endpoints())
            job.whole(2)
            own.cut()
            waits = r" reason=\"2 hosts of epoch \d+ may still run it, out of reach"
            last = job.start(3)
            last.wait_for(waits)
            job.drop(last).kill()
            job.start(4).wait_for(waits)
            own.mend()
            job.whole(3)
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)

    def test_another_host_that_cannot_is_left_behind_and_comes_back(self):
        with link.Link(self.etcd) as own, self.survivors() as job:
            for number in (1, 2):
                job.start(number)
            job.machines[1].wait_for(" registered ")
            last = job.start(3, endpoints=own.endpoints())
            job.whole(3)
            job.drop(last)
            since = job.marks()
            own.cut()
            job.whole(2, since)
            job.machines[3] = last
            since = {**job.marks(), 3: last.mark()}
            own.mend()
            job.whole(3, since)
            self.assertEqual(set(job.finish().values()), {0}, job.text())
            self.check_epochs(job)


class Doors(unittest.TestCase):
    """What is told where the cluster does not let a launcher in."""

    def setUp(self):
        why = cluster.why_not()
        if why:
            self.skipTest(f"there is no cluster: {why}")
        self.temporary = tempfile.TemporaryDirectory(prefix="keel-etcd-doors-")
        self.addCleanup(self.temporary.cleanup)

    def launch(self, endpoints, conf="", options=(), **environment):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_", "KEEL_ETCD_"))}
        clean |= {"TMPDIR": self.temporary.name} | environment
        conf = ",".join(filter(None, ["last_call_timeout=1,join_timeout=2", conf]))
        return subprocess.run(
            [ARGS.keelrun, "--nnodes=1:2", "--rdzv-backend=etcd", "--rdzv-id=doors",
             f"--rdzv-endpoint={endpoints}", f"--rdzv-conf={conf}", *options, "--no-python",
             "/bin/sh", "-c", "echo $KEEL_ETCD_USER,$KEEL_ETCD_PASSWORD."],
            env=clean, capture_output=True, text=True, check=False,
            timeout=machines.HANG_LIMIT_S)

    def check_refused(self, done, words, code=1):
        self.assertEqual(done.returncode, code, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("terminate called", done.stderr)

    def test_where_nobody_listens(self):
        nobody = f"127.0.0.1:{free_port()}"
        self.check_refused(self.launch(nobody),
                           ["the store could not be reached", f"the etcd cluster at {nobody}",
                            "refused the connection", "check that more than half"], LOST)

    def test_users_and_passwords(self):
        with cluster.Cluster(1) as etcd:
            etcd.enable_users("secret")
            where = f"the etcd cluster at {etcd.endpoints()}"
            self.check_refused(self.launch(etcd.endpoints()), [f"{where} asks for a user"])
            wrong = self.launch(etcd.endpoints(), KEEL_ETCD_USER="root",
                                KEEL_ETCD_PASSWORD="unfit")
            self.check_refused(wrong, [f"{where} does not take the password of user 'root'"])
            self.assertNotIn("unfit", wrong.stderr)
            right = self.launch(etcd.endpoints(), KEEL_ETCD_USER="root",
                                KEEL_ETCD_PASSWORD="secret")
            self.assertEqual(right.returncode, 0, right.stderr)
            self.assertIn("root,.", right.stdout)   # workers get no password

    def test_certificates(self):
        folder = self.temporary.name
        ours = cluster.make_certificates(folder, "ours")
        theirs = cluster.make_certificates(folder, "theirs")

        def conf(authority, own=None):
            return f"protocol=https,cacert={authority[0]}" + (
                f",cert={own[1]},key={own[2]}" if own else "")
        with cluster.Cluster(1, tls=ours) as etcd:
            def refused(with_conf, *words):
                self.check_refused(self.launch(etcd.endpoints(), with_conf), words)
            refused(conf(theirs, ours), "our CA file does not vouch for", "give the CA")
            refused(conf(ours), "refused our certificate", "give a client certificate")
            refused(conf(ours, theirs), "refused our certificate")
            refused(conf(["/nowhere/ca.pem"]), "'/nowhere/ca.pem'", "check its path")
            done = self.launch(etcd.endpoints(), conf(ours, ours))
            self.assertEqual(done.returncode, 0, done.stderr)


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--survivor", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="minimal_train")
    parser.add_argument("--rounds", type=int, default=1, help="of Soak")
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[__file__, *rest])


if __name__ == "__main__":
    main()
