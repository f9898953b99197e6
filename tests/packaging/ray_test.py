"""packaging/ray/ray_train.py on a real Ray of this machine, whose nodes are raylets of their own.

Promises   whatever is killed, the job ends with the bits of an undisturbed run. What the script
           does about each exit code is tried without Ray, too.
Does not   have several machines: all nodes have one address. Start a RayJob.
"""
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

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
        self.assertEqual(driver.wait(checks.HANG_LIMIT_S), 78, self.log())
        self.assertNotIn("is asked for", self.log())

    def test_the_others_go_on_without_a_newcomer_that_is_refused(self):
        # The nodes' keelrun is one that refuses as soon as a file says so.
        folder = self.world / "bin"
        folder.mkdir()
        refused = self.world / "refused"
        (folder / "keelrun").write_text(f"#!/bin/sh\n[ -e {refused} ] && exit 78\n"
                                        f"exec {BIN}/keelrun \"$@\"\n")
        (folder / "keelrun").chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
            self.nodes += [self.cluster.add_node(num_cpus=1)]
        self.cluster.remove_node(self.nodes[0])
        driver = self.start(8000)
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        refused.touch()
        self.cluster.remove_node(self.nodes[1], allow_graceful=False)
        self.await_text("workers=1 hosts=1")
        with mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
            self.cluster.add_node(num_cpus=1)
        self.await_text("ended with 78")
        self.assert_finished(driver, 8000)


class Call:
    """What a node is asked for; ready once it has an answer."""

    def __init__(self, answer=None):
        self.answer = answer


class ScriptedRay:
    """In place of Ray: nodes that are there at once, and launchers that end as they are told to.

    `ends`: (node, code) in the order in which launchers end; LOST in place of a code is a node that
    dies, whose place stays empty. Who is told to stop ends with `when_stopped`."""
    LOST = object()

    def __init__(self, ends, when_stopped=75):
        self.ends, self.when_stopped = list(ends), when_stopped
        self.running = {}       # node -> the call of its launcher
        self.launched = []      # nodes, in the order in which launchers were started
        self.stopped = set()
        self.empty = set()

    def node(self, number):
        def run(_words):
            self.launched.append(number)
            self.running[number] = Call()
            return self.running[number]

        def method(call):
            return types.SimpleNamespace(remote=call)
        return types.SimpleNamespace(
            address=method(lambda: Call(None if number in self.empty else f"host{number}")),
            run=method(run), stop=method(lambda: self.stopped.add(number)))

    def wait(self, calls, timeout):
        del timeout
        ready = [call for call in calls if call.answer is not None]
        if not ready:
            number, answer = self.next_end()
            call = self.running.pop(number)
            call.answer = answer
            if answer is self.LOST:
                self.empty.add(number)
            ready = [call]
        return ready, []

    def next_end(self):
        told = sorted(self.stopped & set(self.running))
        if told and (not self.ends or self.ends[0][0] not in self.running):
            return told[0], self.when_stopped
        if not self.ends:
            raise AssertionError(f"it waits for ever, for {sorted(self.running)}")
        return self.ends.pop(0)

    def script(self):
        """ray_train.py, with this for Ray."""
        ray = types.ModuleType("ray")
        ray.remote = lambda **_: lambda kind: kind
        ray.wait, ray.get = self.wait, self.get
        ray.get_runtime_context = lambda: types.SimpleNamespace(get_job_id=lambda: "1")
        parts = {"ray": ray, "ray.util": types.ModuleType("ray.util")}
        for name, value in (("ray.exceptions.RayActorError", LookupError),
                            ("ray.util.placement_group.placement_group", lambda *_, **__: None),
                            ("ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy",
                             lambda _, number: number)):
            module, _, last = name.rpartition(".")
            parts[module] = types.ModuleType(module)
            setattr(parts[module], last, value)
        spec = importlib.util.spec_from_file_location("ray_train", SCRIPT)
        script = importlib.util.module_from_spec(spec)
        with mock.patch.dict(sys.modules, parts):
            spec.loader.exec_module(script)
        script.Node.options = lambda scheduling_strategy, **_: types.SimpleNamespace(
            remote=lambda: self.node(scheduling_strategy))
        script.PAUSE_S = 0
        return script

    def get(self, call):
        if call.answer is self.LOST:
            raise LookupError
        return call.answer


class DecisionsTest(unittest.TestCase):
    def job(self, nodes, ends, least=1, **more):
        """Its exit code, and the world in which it was."""
        world = ScriptedRay(ends, **more)
        given = types.SimpleNamespace(nodes=nodes, least=least, cpus=1, gpus=0, port=1,
                                      restarts=100, words=["train"])
        return world.script().Job(given).run(), world

    def test_the_others_go_on_without_a_node_that_is_refused(self):
        code, world = self.job(3, [(1, 78), (0, 75), (0, 0)])
        self.assertEqual(code, 0)
        self.assertEqual(world.launched, [0, 1, 2, 0])   # node 0 is started again, node 1 is not

    def test_a_job_of_which_all_are_refused_ends(self):
        code, world = self.job(3, [(0, 78), (2, 78), (1, 78)])
        self.assertEqual((code, world.launched), (78, [0, 1, 2]))

    def test_too_few_that_are_not_refused_are_stopped(self):
        code, world = self.job(3, [(0, 78), (2, 78)], least=2)
        self.assertEqual((code, world.stopped), (78, {1}))

    def test_a_refused_node_waits_for_nobody_who_may_never_come(self):
        code, _ = self.job(2, [(0, ScriptedRay.LOST), (1, 78)])
        self.assertEqual(code, 78)

    def test_nobody_is_started_again_once_the_job_has_finished(self):
        for last in (0, 75, 76, 77, 78, -9):
            with self.subTest(last):
                code, world = self.job(3, [(0, 75), (1, 0), (2, last)], when_stopped=76)
                self.assertEqual((code, world.launched), (0, [0, 1, 2, 0]))

    def test_who_still_looks_for_a_finished_job_is_stopped(self):
        code, world = self.job(2, [(0, 0)])
        self.assertEqual((code, world.stopped), (0, {1}))

    def test_what_fails_stops_all(self):
        for failed in (1, 2):
            with self.subTest(failed):
                code, world = self.job(3, [(1, failed)])
                self.assertEqual((code, world.stopped), (failed, {0, 2}))


if __name__ == "__main__":
    checks.main()
