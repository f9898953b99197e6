"""The task files of packaging/skypilot.

Promises   each is valid by the schemas of SkyPilot itself, where Python has that package; its shell
           is clean; its exit codes are the launcher's; and it is run as SkyPilot would run it, with
           SkyPilot's variables: alone, on two "machines" of this one, through a kill of one of
           them, and through the stop and the new start of all.
Does not   start SkyPilot or a machine.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import checks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from free_port import free_port  # noqa: E402

GIVEN = checks.arguments(python={"default": ""})
FILES = sorted((GIVEN.source / "packaging/skypilot").glob("*.yaml"))
BIN = GIVEN.build / "bin"
# SkyPilot waits so long between SIGTERM and SIGKILL (sky/skylet/subprocess_daemon.py).
KILL_AFTER_S = 30


def task(name):
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise unittest.SkipTest("this Python has no yaml (tools/setup.sh --tests)") from None
    return yaml.safe_load((GIVEN.source / "packaging/skypilot" / name).read_text())


class FilesTest(unittest.TestCase):
    def test_the_schemas_of_skypilot_take_them(self):
        home = tempfile.mkdtemp(prefix="keel-sky-")
        self.addCleanup(shutil.rmtree, home)
        os.environ["HOME"] = home  # SkyPilot writes there when it is imported
        try:
            import sky  # pylint: disable=import-outside-toplevel
            from sky.utils import schemas, validator  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no skypilot (Packaging.schedulers gets it)")
        check = validator.get_schema_validator()
        self.assertTrue(FILES)
        for path in FILES:
            one = task(path.name)
            with self.subTest(path.name):
                check(schemas.get_task_schema()).validate(one)
                check(schemas.get_resources_schema()).validate(one["resources"])
                for mount in one.get("file_mounts", {}).values():
                    check(schemas.get_storage_schema()).validate(mount)
                made = sky.Task.from_yaml_config({**one, "file_mounts": {}, "workdir": None})
                self.assertEqual(made.num_nodes, one.get("num_nodes", 1))
                self.assertTrue(made.use_spot)
        for wrong in ({**one, "num_node": 2}, {**one, "num_nodes": "two"}):
            with self.assertRaises(Exception):
                check(schemas.get_task_schema()).validate(wrong)
        with self.assertRaises(Exception):
            check(schemas.get_resources_schema()).validate(
                {"job_recovery": {"recover_on_exit_codes": ["75"]}})
        with self.assertRaises(Exception):
            check(schemas.get_storage_schema()).validate({"name": "b", "mode": "MOUNTED"})

    def test_skypilot_uploads_the_wheel(self):
        try:
            from sky.data import storage_utils  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("this Python has no skypilot (Packaging.schedulers gets it)")
        folder = tempfile.mkdtemp(prefix="keel-sky-")
        self.addCleanup(shutil.rmtree, folder)
        wheel = "evenkeel_torch-0.2.0-py3-none-any.whl"
        for name in (wheel, f"dist/{wheel}"):
            path = pathlib.Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.touch()
        # As in what a forge offers for Python.
        pathlib.Path(folder, ".gitignore").write_text("__pycache__/\ndist/\nwheels/\n*.egg\n")
        checks.run("git", "init", "--quiet", folder)
        left_out = {one.strip("/") for one in storage_utils.get_excluded_files(folder)}
        self.assertNotIn(wheel, left_out)
        self.assertIn("dist", left_out, "then the files' headers need not warn of it")
        for path in FILES:
            self.assertIn(" evenkeel_torch-*.whl ", task(path.name)["setup"])

    def test_their_shell_is_clean(self):
        checks.need("shellcheck", "shellcheck")
        for path in FILES:
            for part in ("setup", "run"):
                checks.run("shellcheck", "--norc", "--shell=bash", "-", stdin=None,
                           input=task(path.name)[part])
        with self.assertRaises(AssertionError):
            checks.run("shellcheck", "--norc", "--shell=bash", "-", stdin=None, input="echo $1\n")

    def test_exit_codes_are_the_launchers(self):
        codes = checks.exit_codes(GIVEN.source)
        for path in FILES:
            recovery = task(path.name)["resources"]["job_recovery"]
            self.assertEqual(set(recovery["recover_on_exit_codes"]),
                             {codes["Stopped"], codes["QuorumLost"], codes["Unsaved"],
                              codes["Shunned"]})
            # It would also restart what is refused or misused.
            self.assertNotIn("max_restarts_on_errors", recovery)

    def test_workers_have_less_time_than_skypilot_gives(self):
        for path in FILES:
            limit, = re.findall(r"--shutdown-timeout=(\d+)s", task(path.name)["run"])
            self.assertLess(int(limit), KILL_AFTER_S)

    def test_what_is_mounted_is_where_it_saves(self):
        one = task("train.yaml")
        folder, = re.findall(r"--checkpoint-dir (\S+)", one["envs"]["TRAIN"])
        self.assertIn(os.path.dirname(folder), one["file_mounts"])
        self.assertIn("--checkpoint-dir s3://", task("nodes.yaml")["envs"]["TRAIN"])


class RunTest(unittest.TestCase):
    """The part `run` of a file, in bash, with what SkyPilot would put into its environment."""

    def setUp(self):
        if not (BIN / "minimal_train").exists():
            self.skipTest("this build has no training program")
        self.world = pathlib.Path(tempfile.mkdtemp(prefix="keel-sky-"))
        self.addCleanup(shutil.rmtree, self.world)
        self.port = free_port()
        self.nodes = []
        self.addCleanup(self.leave_nobody)

    def leave_nobody(self):
        for node in self.nodes:
            if node.poll() is None:
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()

    def start(self, name, steps, rank=0, hosts=("127.0.0.1",), **more):
        """One machine; its log is `rank.txt`."""
        one = task(name)
        train = (f"minimal_train --steps {steps} --checkpoint-dir {self.world}/saved "
                 "--save-every 200 --log-every 20")
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith(("PET_", "KEELRUN_", "TORCH", "SKYPILOT_"))}
        given = {**one["envs"], "TRAIN": train, **({"PORT": str(self.port)} if rank or
                                                   "PORT" in one["envs"] else {}), **more}
        environment = {**clean, **given, "PATH": f"{BIN}:{os.environ['PATH']}",
                       "KEELRUN_NOTICE": "none", "SKYPILOT_NUM_GPUS_PER_NODE": "0",
                       "SKYPILOT_NODE_RANK": str(rank), "SKYPILOT_NUM_NODES": str(len(hosts)),
                       "SKYPILOT_NODE_IPS": "\n".join(hosts),
                       "SKYPILOT_TASK_ID": "sky-managed-2026-11-29-06-00-00-000000_x_1-0"}
        with open(self.world / f"{rank}.txt", "ab") as log:
            node = subprocess.Popen(["bash", "-c", one["run"]], env=environment, stdout=log,
                                    stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.nodes.append(node)
        return node

    def log(self, rank=0):
        return (self.world / f"{rank}.txt").read_text(errors="replace")

    def await_text(self, text, rank=0, times=1):
        checks.await_true(lambda: self.log(rank).count(text) >= times,
                          f"{times} x {text!r}", lambda: self.log(rank))

    def assert_ended(self, nodes, code):
        self.assertEqual([node.wait(checks.HANG_LIMIT_S) for node in nodes], [code] * len(nodes),
                         "\n".join(self.log(rank) for rank in range(len(nodes))))

    def assert_bits(self, steps):
        alone = checks.run(BIN / "minimal_train", "--steps", steps, stderr=subprocess.DEVNULL)
        logs = "".join(path.read_text() for path in self.world.glob("?.txt"))
        self.assertIn(alone.strip().splitlines()[-1], logs)
        checks.run(BIN / "keel", "verify", self.world / "saved")

    def test_one_machine_is_replaced_by_another(self):
        first = self.start("train.yaml", 1500)
        self.await_text(" info step ")
        os.killpg(first.pid, signal.SIGTERM)  # as the whole tree of processes gets it
        self.assert_ended([first], 75)
        self.assert_ended([self.start("train.yaml", 1500)], 0)
        self.assertIn("resumed step=", self.log())
        self.assert_bits(1500)

    def test_the_others_go_on_after_a_kill_and_one_that_comes_back_joins(self):
        hosts = ("127.0.0.1", "127.0.0.2")
        nodes = [self.start("nodes.yaml", 6000, rank, hosts) for rank in range(2)]
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        os.killpg(nodes[1].pid, signal.SIGKILL)
        self.await_text("workers=1 hosts=1")
        nodes[1] = self.start("nodes.yaml", 6000, 1, hosts)
        self.await_text("workers=2 hosts=2", times=2)
        self.assert_ended(nodes, 0)
        self.assert_bits(6000)

    def test_all_stop_and_start_again(self):
        hosts = ("127.0.0.1", "127.0.0.2")
        nodes = [self.start("nodes.yaml", 3000, rank, hosts) for rank in range(2)]
        self.await_text("workers=2 hosts=2")
        self.await_text(" info step ")
        # One machine is told to leave. SkyPilot sees its exit code, and cancels the others.
        os.killpg(nodes[1].pid, signal.SIGTERM)
        self.assertEqual(nodes[1].wait(checks.HANG_LIMIT_S), 75, self.log(1))
        os.killpg(nodes[0].pid, signal.SIGTERM)
        self.assert_ended(nodes, 75)
        nodes = [self.start("nodes.yaml", 3000, rank, hosts) for rank in range(2)]
        self.assert_ended(nodes, 0)
        self.assertIn("resumed step=", self.log() + self.log(1))
        self.assert_bits(3000)


if __name__ == "__main__":
    checks.main_under(GIVEN.python, GIVEN, __file__)
