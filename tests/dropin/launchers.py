"""The two launchers that the tests of this folder hold against each other, and how to run them.

Promises   everything a run started is killed at its end, orphans too: whatever still has the run's
           mark in its environment. Every wait has a limit.
Does not   judge what came out.
"""
import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

HANG_LIMIT_S = 300
MARK = "KEEL_DROPIN_RUN"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../harness"))
from marked import await_none_marked, kill_marked  # noqa: E402


class Launcher:
    """`command`: what stands where a user writes torchrun. `python`: what workers run with."""

    def __init__(self, name, command, python):
        self.name, self.command, self.python = name, command, python

    def environment(self, folder, more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_")) and name not in (
                     "OMP_NUM_THREADS", "PYTHON_EXEC", "MASTER_ADDR", "MASTER_PORT")}
        path = os.path.dirname(self.python) + os.pathsep + clean.get("PATH", "")
        return {**clean, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OUT": folder,
                "TMPDIR": folder, MARK: folder, **more}


def keelrun(binary, python):
    return Launcher("keelrun", [binary], python)


def torchrun(python):
    return Launcher("torchrun", [python, "-m", "torch.distributed.run"], python)


def find_python(torch_folder):
    """The interpreter to whose site-packages LibTorch belongs, or (None, why not)."""
    folder = torch_folder
    for _ in range(4):  # <prefix>/lib/python3.x/site-packages/torch
        folder = os.path.dirname(folder)
    python = os.path.join(folder, "bin", "python3")
    if not torch_folder or not os.access(python, os.X_OK):
        return None, f"LibTorch at '{torch_folder}' is not part of a Python installation"
    works = subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_available()"],
                           capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)
    if works.returncode != 0:
        return None, f"{python} cannot import torch.distributed: {works.stderr.strip()[-200:]}"
    return python, None


def version(text):
    """(2, 15) of "2.15.0+cpu"; () of ""."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def version_of(torch_folder):
    with open(os.path.join(torch_folder, "version.py"), encoding="utf-8") as file:
        return version(re.search(r"__version__ = '(.*)'", file.read())[1])


def arguments(doc, **more):
    """(those of a test of the launchers, with a `python` that has PyTorch; what is unittest's).
    Where there is none it says so, and the test ends. `more`: option -> its help; "" by default.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--keelrun", required=True, type=os.path.abspath)
    parser.add_argument("--torch", default="", help="LibTorch's folder, within a Python")
    for name, text in more.items():
        parser.add_argument(f"--{name}", default="", help=text)
    args, rest = parser.parse_known_args()
    args.python, why_not = find_python(args.torch)
    if args.python is None:
        say(f"skipped: {why_not}; tools/setup.sh installs one")
        sys.exit()
    return args, rest


def kill_left(folder):
    """Those started in that run, and theirs."""
    return kill_marked(MARK, folder)


class Run:
    """One or more launchers of one job, started together, in a folder of their own."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="keel-dropin-")
        self.folder = os.path.realpath(self.temporary.name)
        self.processes = []
        self.taken = None

    def take_port(self):
        """One that somebody who is no launcher listens at, until the end."""
        self.taken = socket.create_server(("", 0))
        return self.taken.getsockname()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_left(self.folder)
        for process, out, err in self.processes:
            process.wait()
            out.close()
            err.close()
        if self.taken is not None:
            self.taken.close()
        self.temporary.cleanup()

    def start(self, launcher, arguments, environment=None):
        number = len(self.processes)
        out = open(f"{self.folder}/launcher{number}.out", "w+", encoding="utf-8", errors="replace")
        err = open(f"{self.folder}/launcher{number}.err", "w+", encoding="utf-8", errors="replace")
        process = subprocess.Popen(
            launcher.command + arguments, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
            stderr=err, env=launcher.environment(self.folder, environment or {}))
        self.processes.append((process, out, err))
        return process

    def wait(self, limit_s=HANG_LIMIT_S):
        """The exit codes, in the order of start."""
        end = time.monotonic() + limit_s
        try:
            return [process.wait(max(end - time.monotonic(), 0.01))
                    for process, _, _ in self.processes]
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end within {limit_s} s\n{self.report()}") from None

    def wait_until(self, done, what, limit_s=HANG_LIMIT_S):
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                raise AssertionError(f"never {what} within {limit_s} s\n{self.report()}")
            time.sleep(0.02)

    def text(self, number, stream):
        file = self.processes[number][1 if stream == "out" else 2]
        file.flush()
        file.seek(0)
        return file.read()

    def report(self):
        lines = []
        for number, (process, _, _) in enumerate(self.processes):
            lines.append(f"launcher {number} (exit code {process.poll()}): {process.args}")
            lines += [f"  {stream}| {line}" for stream in ("out", "err")
                      for line in self.text(number, stream).splitlines()[-25:]]
        return "\n".join(lines)

    def leftovers(self, limit_s=5):
        """Who is left some time after the launchers' end; whoever watches over them ends with them,
        but not in the same instant."""
        return await_none_marked(MARK, self.folder, limit_s)


def say(text):
    print(text, file=sys.stderr, flush=True)
