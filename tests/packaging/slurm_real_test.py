"""The batch scripts of packaging/slurm under a real Slurm of three nodes with unlike numbers of
GPUs (slurm_cluster.py), with real keelrun and real training.

Promises   each job here ends with the bits of an undisturbed run, after what happened to it.
Does not   see GPUs, time limits of hours, or another Slurm than Debian's.
"""
import re
import shutil
import subprocess
import unittest

import checks
import slurm_cluster

GIVEN = checks.arguments()
SCRIPTS = GIVEN.source / "packaging/slurm"
BIN = GIVEN.build / "bin"
GPUS = {"big": 3, "mid": 2, "low": 1}
ALL = ("--nodes=3", "--gpus=6")
UNLIKE = ("--nodes=1", "--gpus-per-node=3", ":", "--nodes=2", "--gpus-per-node=1",
          "--cpus-per-task=1")
# Holds srun back until the test lets it go.
HELD_SRUN = """#!/usr/bin/env bash
echo >"$HOLD/ready"
while [[ ! -e $HOLD/go ]]; do sleep 0.1; done
exec {srun} "$@"
"""


class SlurmTest(unittest.TestCase):
    """What the tests of all kinds of jobs share."""
    cluster = None

    @classmethod
    def setUpClass(cls):
        if not (BIN / "minimal_train").exists():
            raise unittest.SkipTest("this build has no training program")
        why = slurm_cluster.why_not()
        if why:
            raise unittest.SkipTest(why)
        cls.cluster = slurm_cluster.Cluster(GIVEN.build, GPUS)
        cls.enterClassContext(cls.cluster)

    def setUp(self):
        # A test that failed must not hold the nodes of the next one.
        self.addCleanup(self.cluster.free)
        self.folder = self.cluster.folder / self.id().rpartition(".")[2]
        self.folder.mkdir()

    def submit(self, *options, script="train.sbatch", steps=1500, variables=(), words=()):
        """The job's number. It saves below the test's own folder, as `run`."""
        said = self.cluster.run(
            "sbatch", "--parsable", "--time=8", f"--chdir={self.folder}",
            ",".join(["--export=ALL", *variables]), *options, SCRIPTS / script, "minimal_train",
            "--steps", steps, "--checkpoint-dir", "run", "--save-every", "500", *words)
        return said.strip().split(";")[0]

    def log(self, job):
        path = self.folder / f"evenkeel-{job}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def await_text(self, job, text, times=1):
        checks.await_true(lambda: self.log(job).count(text) >= times, f"{times} x {text!r}",
                          lambda: f"{self.log(job)[-5000:]}\n{self.cluster.logs()}")

    def await_training(self, job, workers, hosts, times=1):
        """It steps with so many workers, for the last of so many times."""
        self.await_text(job, f"workers={workers} hosts={hosts} ", times)
        seen = self.log(job).count(" info step ")
        self.await_text(job, " info step ", seen + 1)

    def states(self, job):
        return self.cluster.run("squeue", "--noheader", f"--jobs={job}", "--format=%T",
                                may_fail=True)

    def await_end(self, job):
        checks.await_true(lambda: not re.search(r"(?m)^[A-Z]+$", self.states(job)), f"job {job}",
                          lambda: f"{self.log(job)[-5000:]}\n{self.cluster.logs()}")

    def finish(self, job, steps=1500, resumed=True):
        """It ends with the bits of an undisturbed run, after it has gone on from a checkpoint."""
        self.await_end(job)
        text = self.log(job)
        undisturbed = checks.run(BIN / "minimal_train", "--steps", steps,
                                 stderr=subprocess.DEVNULL)
        self.assertIn(re.search("final step=.*", undisturbed)[0], text)
        self.assertEqual("resumed step=" in text, resumed, text[-5000:])
        checks.run(BIN / "keel", "verify", self.folder / "run")
        shown = self.cluster.run("scontrol", "show", "job", job)
        self.assertNotIn("JobState=FAILED", shown)
        self.assertIn("JobState=COMPLETED", shown)

    def workers(self, job):
        """Of each launcher that started, in no order."""
        return sorted(re.findall(r"job-started .* workers=(\d)", self.log(job)))


class OneNodeTest(SlurmTest):
    TWO = ("WORKERS_PER_NODE=2",)

    def test_a_signal_saves_queues_again_and_goes_on(self):
        job = self.submit(variables=self.TWO)
        self.await_training(job, 2, 1)
        self.cluster.run("scancel", "--signal=USR1", job)
        self.await_text(job, "stopped with 75, queued again (restart 1)")
        # Not the half minute of --shutdown-timeout: the job had 8 minutes.
        self.assertRegex(self.log(job), r'warn signal signal=SIGUSR1 to_save="[67] min')
        self.finish(job)

    def test_a_requeue_by_an_administrator_saves_first(self):
        job = self.submit(variables=self.TWO)
        self.await_training(job, 2, 1)
        self.cluster.run("scontrol", "requeue", job)
        self.finish(job)

    def test_preemption_by_another_partition_saves_and_goes_on(self):
        job = self.submit("--nodelist=big", variables=self.TWO)
        self.await_training(job, 2, 1)
        self.cluster.run("sbatch", "--partition=urgent", "--nodelist=big", "--exclusive",
                         "--output=/dev/null", "--wrap", "true")
        self.finish(job)

    def test_scancel_saves_and_ends_it_for_good(self):
        job = self.submit(steps=1_000_000, variables=self.TWO)
        self.await_training(job, 2, 1)
        self.cluster.run("scancel", job)
        self.await_end(job)
        self.assertNotIn("queued again", self.log(job))
        checks.run(BIN / "keel", "verify", self.folder / "run")

    def test_a_launcher_that_is_killed_lets_the_job_go_on(self):
        job = self.submit("--nodelist=mid", "--gpus-per-node=2")
        self.await_training(job, 2, 1)
        self.cluster.kill_launcher("mid")
        self.await_text(job, "stopped with 137, queued again (restart 1)")
        self.await_end(job)
        self.assertIn("final step=1500", self.log(job))

    def test_each_task_of_an_array_is_a_job_of_its_own(self):
        job = self.submit("--array=1-2", script="array.sbatch", variables=self.TWO,
                          words=("--seed={}", "--checkpoint-dir=sweep-{}"))
        tasks = [f"{job}_{task}" for task in (1, 2)]
        for task in tasks:
            self.await_text(task, " info step ")
        self.cluster.run("scancel", "--signal=TERM", tasks[1])
        self.await_text(tasks[1], "queued again")
        for task in tasks:
            self.await_text(task, "final step=1500")
        self.assertNotIn("resumed", self.log(tasks[0]))
        self.assertIn("resumed", self.log(tasks[1]))
        self.assertNotEqual(*(re.search("final .*", self.log(task))[0] for task in tasks))

    def test_an_array_has_the_gpus_of_whole_nodes(self):
        job = self.submit("--array=1", "--exclusive", "--nodelist=mid", script="array.sbatch",
                          steps=40)
        self.await_end(job)
        self.assertEqual(self.workers(f"{job}_1"), ["2"])


class UnlikeNodesTest(SlurmTest):
    """One job of three nodes."""

    def test_each_node_has_workers_for_its_gpus_and_all_go_on_after_two_signals(self):
        job = self.submit("--nodes=3", "--exclusive")
        for restart in (1, 2):
            self.await_training(job, 6, 3, times=3 * restart)   # each host tells it
            self.assertEqual(self.workers(job), sorted(restart * ["1", "2", "3"]))
            self.cluster.run("scancel", "--signal=USR1", job)
            self.await_text(job, f"stopped with 75, queued again (restart {restart})")
        self.finish(job)
        self.assertEqual(self.workers(job), sorted(3 * ["1", "2", "3"]))

    def test_a_requeue_by_an_administrator_saves_first(self):
        job = self.submit(*ALL)
        self.await_training(job, 6, 3)
        self.cluster.run("scontrol", "requeue", job)
        self.finish(job)
        self.assertEqual(self.workers(job), sorted(2 * ["1", "2", "3"]))

    def test_the_others_go_on_without_a_node(self):
        job = self.submit(*ALL, steps=3000)
        self.await_training(job, 6, 3)
        self.cluster.kill("mid")
        self.await_training(job, 4, 2)
        self.finish(job, steps=3000, resumed=False)
        self.assertIn("Node failure on mid", self.log(job))   # as Slurm found out by itself

    def test_too_few_nodes_save_and_are_queued_again(self):
        job = self.submit(*ALL, variables=("NODES_LEAST=3", "PET_RDZV_CONF=join_timeout=5"))
        self.await_training(job, 6, 3)
        self.cluster.kill("mid")
        self.await_text(job, "stopped with 76, queued again (restart 1)")
        self.cluster.start_node("mid")
        self.finish(job)

    def test_the_first_node_fails_and_another_queues_the_job_again(self):
        # The others run on, unheard, since srun is gone, and so is the script.
        job = self.submit(*ALL, steps=3000)
        self.await_text(job, "info checkpoint step=500")
        self.cluster.kill("big")
        self.cluster.lose("big")
        self.cluster.start_node("big")
        self.finish(job, steps=3000)
        self.assertEqual(self.workers(job), sorted(2 * ["1", "2", "3"]))

    def held(self, *options):
        """A job whose srun waits to be let go."""
        hold = self.folder / "hold"
        hold.mkdir()
        (hold / "srun").write_text(HELD_SRUN.format(srun=self.cluster.which("srun")))
        (hold / "srun").chmod(0o755)
        path = f"PATH={hold}:{self.cluster.environment()['PATH']}"
        job = self.submit(*options, variables=(f"HOLD={hold}", path))
        checks.await_true((hold / "ready").exists, "srun", self.cluster.logs)
        return job, hold

    def test_a_node_that_dies_before_the_first_step_does_not_end_the_job(self):
        for known in (True, False):
            with self.subTest(known_to_slurm=known):
                job, hold = self.held(*ALL)
                self.cluster.kill("mid")
                if known:
                    self.cluster.lose("mid")
                (hold / "go").touch()
                self.await_text(job, "queued again (restart 1)")
                self.assertNotIn("epoch=1", self.log(job))
                self.cluster.start_node("mid")
                self.finish(job, resumed=False)
                shutil.rmtree(hold)
                shutil.rmtree(self.folder / "run")

    def test_a_signal_before_the_first_step_comes_to_the_script(self):
        job, hold = self.held(*ALL)
        self.cluster.run("scancel", "--batch", "--signal=USR1", job)
        self.await_text(job, "queued again (restart 1)")
        (hold / "go").touch()
        self.finish(job, resumed=False)


class HeterogeneousJobTest(SlurmTest):
    """A component of one node, and one of two."""

    def train(self, steps=1500):
        job = self.submit(*UNLIKE, steps=steps)
        self.await_training(job, 5, 3)
        self.assertEqual(self.workers(job), ["1", "1", "3"])
        return job

    def test_a_signal_saves_queues_again_and_goes_on(self):
        job = self.train()
        self.cluster.run("scancel", "--signal=USR1", job)
        self.await_text(job, "stopped with 75, queued again (restart 1)")
        self.finish(job)

    def test_a_requeue_by_an_administrator_saves_first(self):
        job = self.train()
        refused = self.cluster.run("scontrol", "requeue", int(job) + 1, may_fail=True)
        self.assertIn("leader", refused)
        self.cluster.run("scontrol", "requeue", job)
        self.finish(job)

    def test_preemption_saves_and_goes_on(self):
        job = self.train()
        self.cluster.run("sbatch", "--partition=urgent", "--nodes=3", "--exclusive",
                         "--output=/dev/null", "--wrap", "true")
        self.finish(job)

    def test_scancel_saves_and_ends_it_for_good(self):
        job = self.train(steps=1_000_000)
        self.cluster.run("scancel", job)
        self.await_end(job)
        self.assertNotIn("queued again", self.log(job))
        checks.run(BIN / "keel", "verify", self.folder / "run")

    def test_a_node_fails_and_all_components_go_on(self):
        # Slurm queues the component of one node again, though its node is well, and no other.
        job = self.train(steps=3000)
        self.cluster.kill("mid")
        self.await_training(job, 4, 2)
        self.cluster.lose("mid")
        self.await_text(job, "queued again (restart 1)")
        self.cluster.start_node("mid")
        self.finish(job, steps=3000)

    TWO_FIRST = ("--nodes=2", "--nodelist=low,mid", "--gpus-per-node=1", ":",
                 "--nodes=1", "--nodelist=big", "--gpus-per-node=3")

    def test_a_first_component_of_two_nodes_goes_on_without_one_of_them(self):
        job = self.submit(*self.TWO_FIRST, steps=2000)
        self.await_training(job, 5, 3)
        self.cluster.kill("mid")
        self.await_training(job, 4, 2)
        self.cluster.lose("mid")
        self.finish(job, steps=2000, resumed=False)

    def test_a_first_component_of_two_nodes_goes_on_without_the_other_component(self):
        # Slurm queues the other again, where it would wait for ever once the first has finished.
        job = self.submit(*self.TWO_FIRST, steps=2000)
        self.await_training(job, 5, 3)
        self.cluster.kill("big")
        self.await_training(job, 2, 2)
        self.cluster.lose("big")
        self.await_text(job, "stopped with 0, queued again (restart 1)")
        self.cluster.start_node("big")
        self.finish(job, steps=2000)

    def test_the_first_node_fails_and_all_components_go_on(self):
        # The other component runs on. The first one, as it is back, finds that, and queues both.
        job = self.train(steps=3000)
        self.await_text(job, "info checkpoint step=500")
        self.cluster.kill("big")
        self.cluster.lose("big")
        self.cluster.start_node("big")
        self.finish(job, steps=3000)


if __name__ == "__main__":
    checks.main()
