"""How tests of the package start scripts: alone or under keelrun, with the package of the build.

Promises   a script that ends is described by a Run, whatever it did; one that does not end within
           HANG_LIMIT_S is killed with all it has started, and fails the test.
"""
import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import makers

HERE = os.path.dirname(os.path.abspath(__file__))
HANG_LIMIT_S = 300
# Not a whole line: Python writes a line and its end one after the other, and those of two workers
# may mix.
FINAL = re.compile(r"final step=\d+ trail=[0-9a-f]{32} digest=[0-9a-f]{32}")
ARGS = None   # set by main(): keelrun, python, package, programs

# What is left out in scripts that go wrong on purpose.
SMALL = """
import evenkeel as ek
import torch
from torch.nn import functional as F
job = ek.Job(steps=4, lanes=4, lane_batch=2, log_every=0)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(16, 3), torch.randint(0, 2, (16,)))
"""
# The engine's own optimizer: those of PyTorch import its compiler first, for more than a second.
SMALL_OWN = SMALL.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "ek.SGD()")


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = FINAL.findall(out)

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err[-6000:]}"


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PET_", "TORCH", "KEELRUN_", "KEEL_", "PYTHON"))}
    return clean | {"PYTHONPATH": ARGS.package, "OMP_NUM_THREADS": "1"} | more


def start(command, **more):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(**more), start_new_session=True)


def end(process):
    try:
        out, err = process.communicate(timeout=HANG_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"no end in {HANG_LIMIT_S} s\n{Run(None, out, err)}") from None
    return Run(process.returncode, out, err)


def python(script, *options):
    return [ARGS.python, "-B", os.path.join(HERE, script), *options]


def under_keelrun(workers, command, *options):
    return [ARGS.keelrun, "--standalone", f"--nproc-per-node={workers}", *options, "--no-python",
            *command]


class Case(unittest.TestCase):
    MORE = {}   # for the environment of all that is started

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="keel-python-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def alone(self, *command, **more):
        return end(start(list(command), **self.MORE, **more))

    def job(self, workers, *command, options=(), **more):
        return end(start(under_keelrun(workers, list(command), *options), **self.MORE, **more))

    def job_that_loses_a_worker(self, command):
        """Of three, the last one, after the first evaluation."""
        process = start(under_keelrun(3, command, "--max-restarts=3"), **self.MORE)
        told = []
        for line in process.stderr:
            told.append(line)
            if "info evaluation " in line:
                break
        children = []
        for path in glob.glob(f"/proc/{process.pid}/task/*/children"):
            with open(path, encoding="ascii") as file:
                children += [int(word) for word in file.read().split()]
        os.kill(children[-1], signal.SIGKILL)
        rest = end(process)
        run = Run(rest.code, rest.out, "".join(told) + rest.err)
        self.assertIn("killed by signal 9", run.err)
        return run

    def line_of(self, run):
        """Its last line, which all workers told."""
        self.assertEqual(run.code, 0, run)
        self.assertEqual(len(set(run.lines)), 1, run)
        return run.lines[0]

    def written(self, text, beginning=SMALL):
        """The script with this text, after the usual beginning."""
        path = os.path.join(self.folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(beginning + textwrap.dedent(text))
        return [ARGS.python, "-B", path]


class Imported(Case):
    """Scripts alone are processes that have imported PyTorch already, as spares are, and what else
    takes long: nearly all the time of a small script would be that import."""

    IMPORTED = ()   # modules beside PyTorch

    @classmethod
    def setUpClass(cls):
        makers.play_keelrun()
        cls.maker = makers.Maker(
            [ARGS.python, "-B", "-u", os.path.join(HERE, "imported.py"), *cls.IMPORTED],
            HANG_LIMIT_S, env=environment(**cls.MORE))
        cls.addClassCleanup(cls.maker.end)
        assert cls.maker.said() == b"m"

    def fresh(self, *command):
        return super().alone(*command)

    def alone(self, *command):
        if command[0] != ARGS.python:
            return self.fresh(*command)
        interpreter, _, *words = command
        pid, gate = self.maker.make()
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, \
                open(os.devnull, "rb") as nothing:
            makers.become(gate, [interpreter, "-u", *words], environment(**self.MORE),
                          {0: nothing.fileno(), 1: out.fileno(), 2: err.fileno()})
            late = threading.Timer(HANG_LIMIT_S, os.killpg, (pid, signal.SIGKILL))
            late.start()
            try:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            finally:
                late.cancel()
            out.seek(0)
            err.seek(0)
            return Run(code, out.read(), err.read())


class WithPackages(Imported):
    """Scripts that import what only tests need, the first of IMPORTED: without it they are skipped.
    They run in the test's folder, as the jobs do."""

    @classmethod
    def setUpClass(cls):
        found = glob.glob(f"{ARGS.packages}/lib/python3*/site-packages/{cls.IMPORTED[0]}")
        if not found:
            raise unittest.SkipTest(f"there is no {cls.IMPORTED[0]}; tools/setup.sh --tests "
                                    "installs it")
        cls.MORE = cls.MORE | {
            "PYTHONPATH": ARGS.package + os.pathsep + os.path.dirname(found[0])}
        super().setUpClass()

    def setUp(self):
        super().setUp()
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)

    def written(self, text, beginning):
        return super().written(text, f"import os\nos.chdir({self.folder!r})\n" + beginning)


class Watched(Case):
    """A job that is looked at while it runs: keelrun starts the Python itself, so that there are
    spares, and its output is in files."""

    def launch(self, workers, script, *options):
        out, err = (open(f"{self.folder}/{name}", "w+", encoding="utf-8")
                    for name in ("out", "err"))
        self.addCleanup(out.close)
        self.addCleanup(err.close)
        self.process = subprocess.Popen(
            [ARGS.keelrun, "--standalone", f"--nproc-per-node={workers}", *options, script],
            stdout=out, stderr=err, env=environment(PYTHON_EXEC=ARGS.python))
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def tell(self, name):
        """By a file that its script looks for."""
        with open(f"{self.folder}/{name}", "w", encoding="utf-8"):
            pass

    def read(self, name):
        with open(f"{self.folder}/{name}", encoding="utf-8") as file:
            return file.read()

    def all_told(self):
        return self.read("out") + self.read("err")[-6000:]

    def found(self, pattern, times=1, name="out"):
        """All matches, once there are so many."""
        deadline = time.monotonic() + HANG_LIMIT_S
        while True:
            found = re.findall(pattern, self.read(name))
            if len(found) >= times:
                return found
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.fail(f"{times} times {pattern!r}: not there\n{self.all_told()}")
            time.sleep(0.01)

    def ends(self, code):
        self.assertEqual(self.process.wait(HANG_LIMIT_S), code, self.all_told())


def parsed(description, find_python):
    """The options of a test, and what is left of its command line. Without a Python that has
    PyTorch it says so, and ends."""
    global ARGS
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--package", required=True, type=os.path.abspath, help="build/python")
    parser.add_argument("--programs", type=os.path.abspath, help="build/bin")
    parser.add_argument("--packages", type=os.path.abspath,
                        help="an environment with what only tests need")
    parser.add_argument("--torch", type=os.path.abspath, default="",
                        help="LibTorch's folder, within a Python")
    ARGS, rest = parser.parse_known_args()
    ARGS.python, why_not = find_python(ARGS.torch)
    if ARGS.python is None:
        print(f"skipped: {why_not}; tools/setup.sh installs one", file=sys.stderr)
        sys.exit(0)
    return ARGS, rest


def main(description, find_python):
    _, rest = parsed(description, find_python)
    unittest.main(argv=[sys.argv[0], *rest], module="__main__")
