#!/usr/bin/env python3
"""The archives on a bare Debian: a root that holds python3, a PyTorch and nothing else, made by
mmdebstrap. From the tarball and from the .deb: a script trains alone; the same on two workers, one
of which is killed with -9; stopped by SIGTERM (75), and resumed; all end with the same line. keel
looks at what was saved. The tarball's quick start tells its story.

    tests/packaging/bare_root_test.py --source . --build build --torch .../site-packages/torch
    tests/packaging/bare_root_test.py ... --suite trixie --torch /a/torch/for/its/python

What lies beside that torch is what a Python of that Debian gets; it is copied by hard links where
it is on the same disk. Skips, and says why, where it is not root, or has no mmdebstrap, or the
mirror does not answer. The root goes away at the end.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
LIMIT_S = 300
STEPS = 1000   # of 5 ms: enough of them are left when a signal comes
KILL_AT = 10
MIRROR = "http://deb.debian.org/debian"
ARGS = None
PACKAGES = None   # the site-packages that the root gets


def skip(why):
    print(f"bare_root: skipped: {why}")
    sys.exit(SKIPPED)


def make_root(folder):
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        skip("it takes root and mmdebstrap (apt-get install mmdebstrap)")
    done = subprocess.run(
        ["mmdebstrap", "--variant=minbase", "--include=python3,ca-certificates", ARGS.suite, folder,
         MIRROR], capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
    if done.returncode != 0:
        skip(f"no root of {ARGS.suite} could be made: {done.stderr[-300:]}")


def make_archives(folder):
    subprocess.run([ARGS.cpack, "--config", f"{ARGS.build}/CPackConfig.cmake", "-B", folder],
                   check=True, stdout=subprocess.DEVNULL, timeout=2 * LIMIT_S)
    return folder


class Root:
    """A folder that commands see as the whole file system."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(f"{folder}/data", exist_ok=True)
        for name in ("null", "zero", "random", "urandom"):
            if not os.path.exists(f"{folder}/dev/{name}"):
                raise AssertionError(f"{folder} has no /dev/{name}")
        packages, = glob.glob(f"{folder}/usr/lib/python3.*/")
        self.packages = f"{folder}/usr/local/lib/{os.path.basename(packages[:-1])}/dist-packages"
        os.makedirs(os.path.dirname(self.packages), exist_ok=True)
        shutil.rmtree(self.packages, ignore_errors=True)
        if subprocess.run(["cp", "-rl", PACKAGES, self.packages], check=False,
                          capture_output=True).returncode != 0:
            shutil.rmtree(self.packages, ignore_errors=True)
            shutil.copytree(PACKAGES, self.packages, symlinks=True)
        for path in ("examples/python/digits.py", "examples/data"):
            target = f"{folder}/data/{path}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            subprocess.run(["cp", "-rL", f"{ARGS.source}/{path}", target], check=True)

    def command(self, words):
        # Its own /proc, in a namespace that ends with the command: nothing stays mounted.
        inside = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside,
                self.folder, *words]

    def start(self, words, **more):
        environment = {"PATH": "/opt/evenkeel/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                       "HOME": "/root", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", **more}
        return subprocess.Popen(self.command(words), env=environment, text=True, cwd="/",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def run(self, *words, code=0, **more):
        job = self.start(words, **more)
        try:
            text = job.communicate(timeout=LIMIT_S)[0]
        finally:
            job.kill()
        if job.returncode != code:
            raise AssertionError(f"{words}: {job.returncode}, not {code}\n{text[-5000:]}")
        return text


def last_line(text):
    lines = set(re.findall(r"final step=\d+ trail=[0-9a-f]{32} digest=[0-9a-f]{32}", text))
    if len(lines) != 1:
        raise AssertionError(f"not one last line, but {lines}:\n{text[-5000:]}")
    return lines.pop()


def pids_in(root, word):
    """Of this machine's processes, those in the root whose command line has that word, in order."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if os.readlink(f"/proc/{entry}/root") == root and word.encode() in words[:3]:
                found.append(int(entry))
        except OSError:
            continue   # it has ended meanwhile
    return sorted(found)


SCRIPT = "/data/examples/python/digits.py"


def disturbed(root, launch, options):
    """Kills a worker at one step, and stops the job at a later one."""
    killed = stopped = False
    written = []
    job = root.start([*launch, SCRIPT, *options, "--log-every=1"])
    with job:
        for line in job.stdout:
            written.append(line)
            if not killed and f" step={KILL_AT} " in line:
                os.kill(pids_in(root.folder, SCRIPT)[-1], signal.SIGKILL)
                killed = True
            if killed and not stopped and "worker-died" in "".join(written[-50:]) and \
                    re.search(r" step=([2-4]\d) ", line):
                os.kill(pids_in(root.folder, "--standalone")[0], signal.SIGTERM)
                stopped = True
    text = "".join(written)
    if job.returncode != 75 or not stopped:
        raise AssertionError(f"{job.returncode}, killed {killed}, stopped {stopped}\n"
                             f"{text[-5000:]}")
    return text


def try_archive(root, name, python_path):
    alone = last_line(root.run("python3", SCRIPT, f"--steps={STEPS}", PYTHONPATH=python_path))
    launch = ["keelrun", "--standalone", "--nproc-per-node=2", "--max-restarts=3"]
    options = [f"--steps={STEPS}", f"--checkpoint-dir=/data/ckpts-{name}"]
    disturbed(root, launch, options)
    resumed = last_line(root.run(*launch, SCRIPT, *options))
    if resumed != alone:
        raise AssertionError(f"alone:   {alone}\nresumed: {resumed}")
    root.run("keel", "ls", f"/data/ckpts-{name}")
    root.run("keel", "verify", f"/data/ckpts-{name}")
    root.run("keel", "inspect", f"/data/ckpts-{name}")
    told = root.run(*launch, SCRIPT, "--steps=1", code=1, KEEL_TORCH="/data")
    if "there is no PyTorch in /data (KEEL_TORCH)" not in told:
        raise AssertionError(f"KEEL_TORCH=/data is not told of:\n{told[-5000:]}")
    print(f"bare_root: {ARGS.suite}, {name}: {alone}", flush=True)


def try_quick_start(root):
    began = time.monotonic()
    said = root.run("/opt/evenkeel/share/evenkeel/examples/quickstart.sh")
    if "The same, to the last bit." not in said:
        raise AssertionError(f"the quick start told another story:\n{said[-5000:]}")
    print(f"bare_root: {ARGS.suite}, quick start: {time.monotonic() - began:.0f} s", flush=True)


def try_all(folder):
    make_root(folder)
    root = Root(folder)
    archives = make_archives(f"{os.path.dirname(folder)}/made")
    tarball, = glob.glob(f"{archives}/evenkeel-*.tar.gz")
    deb, = glob.glob(f"{archives}/evenkeel_*.deb")
    os.makedirs(f"{folder}/opt/evenkeel")
    subprocess.run(["tar", "-xzf", tarball, "--strip-components=1", "-C",
                    f"{folder}/opt/evenkeel"], check=True)
    try_archive(root, "tarball", "/opt/evenkeel/lib/evenkeel/python")
    try_quick_start(root)
    shutil.rmtree(f"{folder}/opt/evenkeel")
    shutil.copy(deb, f"{folder}/data/evenkeel.deb")
    root.run("apt-get", "install", "-y", "--no-install-recommends", "/data/evenkeel.deb")
    try_archive(root, "deb", "/usr/lib/evenkeel/python")


if __name__ == "__main__":
    PARSER = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    PARSER.add_argument("--suite", default="bookworm")
    for NAME in ("source", "build", "torch"):
        PARSER.add_argument(f"--{NAME}", required=True, type=os.path.realpath)
    PARSER.add_argument("--cpack", default="cpack")
    PARSER.add_argument("--work", help="where the root is made (default: a temporary folder)")
    ARGS = PARSER.parse_args()
    PACKAGES = os.path.dirname(ARGS.torch)
    if not os.path.exists(f"{ARGS.torch}/version.py"):
        skip(f"{ARGS.torch} is no torch of a Python")
    with tempfile.TemporaryDirectory(prefix="keel-root-", dir=ARGS.work) as FOLDER:
        try_all(FOLDER + "/root")
