"""packaging/ray/ray_train.py on a real Ray of this machine, whose nodes are raylets of their own.

Promises   whatever is killed, the job ends with the bits of an undisturbed run.
Does not   have several machines: all nodes have one address. Start a RayJob.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import checks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from free_port import free_port  # noqa: E402

GIVEN = checks.arguments()
BIN = GIVEN.build / "bin"
SCRIPT = GIVEN.source / "packaging/ray/ray_train.py"


class RayTest(unittest.TestCase):
    def setUp(self):
        try:
            from ray import cluster_utils  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no ray (Packaging.schedulers gets it)")
        if not (BIN / "minimal_train").exists():
            self.skipTest("this build has no training program")
        self.world = pathlib.Path(tempfile.mkdtemp(prefix="keel-ray-"))
        self.addCleanup(shutil.rmtree, self.world, ignore_errors=True)
        os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
        os.environ["KEELRUN_NOTICE"] = "none"
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # The head has no processor to give, so that each trainer is on a node that may die.
        self.cluster = cluster_utils.Cluster(initialize_head=True,
                                             head_node_args={"num_cpus": 0})
        self.addCleanup(self.cluster.shutdown)
        self.nodes = [self.cluster.add_node(num_cpus=1) for _ in range(2)]

    def start(self, steps, nodes=2):
        train = ["minimal_train", "--steps", str(steps), "--checkpoint-dir",
                 str(self.world / "saved"), "--save-every", "200", "--log-every", "20"]
        with open(self.world / "log.txt", "ab") as log:
            driver = subprocess.Popen(
                [sys.executable, "-B", SCRIPT, f"--nodes={nodes}", f"--port={free_port()}", "--",
                 *train], env={**os.environ, "RAY_ADDRESS": self.cluster.address,
                               "RAY_DEDUP_LOGS": "0", "PYTHONUNBUFFERED": "1"},
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.kill)
        return driver

    def log(self):
        return (self.world / "log.txt").read_text(errors="replace")

    def await_text(self, text, times=1):
        checks.await_true(lambda: self.log().count(text) >= times, f"{times} x {text!r}", self.log)

    def assert_finished(self, driver, steps):
        self.assertEqual(driver.wait(checks.HANG_LIMIT_S), 0, self.log())
        alone = checks.run(BIN / "minimal_train", "--steps", steps, stderr=subprocess.DEVNULL)
        checks.await_true(lambda: alone.strip().splitlines()[-1] in self.log(), "the end", self.log)
        checks.run(BIN / "keel", "verify", self.world / "saved")

    def test_a_node_that_dies_is_replaced(self):
        driver = self.start(8000)
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        self.cluster.remove_node(self.nodes[1], allow_graceful=False)
        self.await_text("workers=1 hosts=1")
        self.await_text("is lost; another one is asked for")
        self.cluster.add_node(num_cpus=1)
        self.await_text("workers=2 hosts=2", times=2)
        self.assert_finished(driver, 8000)

    def launchers(self):
        """The pids of this job's, in the order in which they were started."""
        own = f"--checkpoint-dir\0{self.world}/saved\0".encode()
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue   # it has ended meanwhile
            if words.startswith(b"keelrun\0") and own in words:
                found.append(int(path.parent.name))
        return sorted(found)

    def test_a_launcher_that_saved_and_left_is_started_again(self):
        driver = self.start(12000)
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        os.kill(self.launchers()[-1], signal.SIGTERM)
        self.await_text("ended with 75")
        self.await_text("workers=2 hosts=2", times=2)
        self.assert_finished(driver, 12000)

    def test_a_signal_stops_all_and_the_next_job_goes_on(self):
        driver = self.start(3000)
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        driver.send_signal(signal.SIGTERM)
        self.assertEqual(driver.wait(checks.HANG_LIMIT_S), 75, self.log())
        driver = self.start(3000)
        self.assert_finished(driver, 3000)
        self.assertIn("resumed step=", self.log())

    def test_what_is_refused_ends_the_job(self):
        driver = self.start(0)
        self.assertIn(driver.wait(checks.HANG_LIMIT_S), (1, 2), self.log())
        self.assertNotIn("is asked for", self.log())


if __name__ == "__main__":
    checks.main()
