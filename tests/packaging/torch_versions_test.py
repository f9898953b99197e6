#!/usr/bin/env python3
"""A released wheel under each version of PyTorch that it has an engine for, and the newest of them
with each Python of this machine: a script trains alone, and under its keelrun while a worker is
killed, with the same last line. Then an engine that is missing is made by evenkeel_build.

It downloads what is missing, 1.8 GB on disk for each pair of PyTorch and Python, and keeps it in
.deps/torch. The table that it prints says which versions give the same bits.
Skips, and says why, without a Python that has PyTorch.
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dropin"))
import launchers
from clean_environment import CleanEnvironment, run, variables

STEPS = 60
KILL_AT = 20
LIMIT_S = 600
ARGS = None
BUILD_LIMIT_S = 7200
# Of what PyTorch needs, that which an older one does not replace.
OWN_LIBRARIES = ("nvidia-nccl-cu13", "nvidia-nvshmem-cu13")


def tag_of(python):
    return run([python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"]).stdout.strip()


def pythons():
    """{"cp312": program} of those that are found here and may have a PyTorch."""
    found = {}
    versions = [f"python3.{minor}" for minor in range(10, 15)]
    for python in [shutil.which(name) for name in versions] + sorted(
            glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-9].*/bin/python3"))):
        if python and subprocess.run([python, "-c", "import ensurepip, venv"], check=False,
                                     capture_output=True).returncode == 0:
            found.setdefault(tag_of(python), python)
    return found


class NoWheel(Exception):
    """There is none of that version for that Python."""


def download(python, home, packages):
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-deps", "--no-compile", "--no-cache-dir", "--only-binary", ":all:",
               "--target", home, *packages]
    try:
        run(command, limit_s=BUILD_LIMIT_S)
    except AssertionError as error:
        if "No matching distribution" in str(error):
            raise NoWheel(f"{packages} for {python}") from None
        raise


def torch_for(python, version, folder):
    """The folder `torch` of that version for that Python, with what it needs of its own."""
    home = f"{folder}/{version}-{tag_of(python)}"
    part = f"{home}.part"
    if not os.path.exists(home):
        launchers.say(f"downloading PyTorch {version} into {home}")
        shutil.rmtree(part, ignore_errors=True)
        download(python, part, [f"torch=={version}"])
        os.rename(part, home)
    if not os.path.exists(f"{home}/nvidia"):
        metadata, = glob.glob(f"{home}/torch-*.dist-info/METADATA")
        with open(metadata, encoding="utf-8") as file:
            wanted = re.findall(rf"^Requires-Dist: ((?:{'|'.join(OWN_LIBRARIES)})==[\d.]+)",
                                file.read(), re.M)
        shutil.rmtree(part, ignore_errors=True)
        download(python, part, wanted)
        os.rename(f"{part}/nvidia", f"{home}/nvidia")
        shutil.rmtree(part)
    return f"{home}/torch"


def last_line(text):
    lines = set(re.findall("^final .*$", text, re.M))
    if len(lines) != 1:
        raise AssertionError(f"not one last line, but {lines}:\n{text[-5000:]}")
    return lines.pop()


def a_worker(launcher, script):
    """Of the processes that this launcher started, one that runs the script."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue   # it has ended meanwhile
        if parent == launcher and os.fsencode(script) in words:
            return int(entry)
    raise AssertionError(f"no child of {launcher} runs {script}")


def killed_job(keelrun, script, options):
    """What a job of three workers wrote, one of which is killed at some step."""
    is_killed = False
    written = []
    with subprocess.Popen([keelrun, "--standalone", "--nproc-per-node=3", "--max-restarts=3",
                           script, *options, "--log-every=1"], env=variables(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        for line in job.stdout:
            written.append(line)
            if not is_killed and f" step={KILL_AT} " in line:
                os.kill(a_worker(job.pid, script), signal.SIGKILL)
                is_killed = True
    text = "".join(written)
    if job.returncode != 0 or not is_killed or "worker-died" not in text:
        raise AssertionError(f"{job.args}: {job.returncode}, killed: {is_killed}\n{text[-5000:]}")
    return text


def try_one(clean, script):
    """The last line, which is the same alone and with a worker killed."""
    options = [f"--steps={STEPS}"]
    alone = last_line(clean.python(script, *options, limit_s=LIMIT_S).stdout)
    together = last_line(killed_job(f"{clean.bin}/keelrun", script, options))
    if together != alone:
        raise AssertionError(f"alone:         {alone}\nwith a death: {together}")
    return alone


def newest_for(python, versions, folder):
    for version in reversed(versions):
        try:
            return version, torch_for(python, version, folder)
        except NoWheel as error:
            launchers.say(f"there is no wheel of {error}")
    raise AssertionError(f"no PyTorch of {versions} for {python}")


def pairs(versions, own, folder):
    """(version, tag of the Python, its program, folder of PyTorch): every version with one Python,
    and the newest with the others, since an engine knows no Python."""
    one = tag_of(own)
    for version in versions:
        yield version, one, own, torch_for(own, version, folder)
    for tag, python in sorted(pythons().items()):
        if tag != one:
            version, torch = newest_for(python, versions, folder)
            yield version, tag, python, torch


def make_again(clean, script, line, version):
    """An engine of the sources in the wheel, in place of the one that the wheel brings."""
    shutil.rmtree(f"{clean.packages}/evenkeel/torch{version.rpartition('.')[0]}")
    launchers.say(clean.python("-m", "evenkeel_build", limit_s=BUILD_LIMIT_S).stdout)
    made = try_one(clean, script)
    if made != line:
        raise AssertionError(f"of the wheel: {line}\nmade here:    {made}")
    # Its module for buckets lies where the wheel has it.
    told = clean.python("-c", "import evenkeel; evenkeel.load('s3://bucket/run')", code=1,
                        AWS_ENDPOINT_URL="http://127.0.0.1:1", AWS_ACCESS_KEY_ID="id",
                        AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="here").stderr
    if not re.search(r"127\.0\.0\.1.*port 1\b", told):
        raise AssertionError(f"a path in a bucket: {told}")


def make_wheel(folder):
    subprocess.run([f"{ARGS.source}/packaging/wheel.sh", "--all", "--build", ARGS.build, "--out",
                    folder], env=variables(), check=True, timeout=BUILD_LIMIT_S)
    wheel, = glob.glob(f"{folder}/*.whl")
    return wheel


def try_all(own, folder):
    with open(f"{ARGS.source}/packaging/wheel/torch_versions.txt", encoding="utf-8") as file:
        versions = [line.strip() for line in file if not line.startswith("#")]
    script = f"{ARGS.source}/examples/python/digits.py"
    wheel = ARGS.wheel or make_wheel(f"{folder}/dist")
    rows, environments = [], {}
    for version, tag, python, torch in pairs(versions, own, f"{ARGS.source}/.deps/torch"):
        clean = CleanEnvironment(f"{folder}/{version}-{tag}", python, torch,
                                 [os.path.dirname(ARGS.torch)])
        clean.install(wheel)
        line = try_one(clean, script)
        rows.append((version, tag, line))
        environments[version, tag] = clean, line
        launchers.say(f"{version} {tag} {line}")
    for version, tag, line in rows:
        same = [other for other, _, others in rows if others == line]
        print(f"{version:8} {tag:6} {line}  (as {', '.join(sorted(set(same)))})")
    clean, line = environments[versions[-1], tag_of(own)]
    make_again(clean, script, line, versions[-1])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True, type=os.path.realpath)
    parser.add_argument("--build", required=True)
    parser.add_argument("--torch", required=True, type=os.path.realpath)
    parser.add_argument("--wheel", help="of wheel.sh --all (default: made here)")
    return parser.parse_args()


if __name__ == "__main__":
    ARGS = arguments()
    OWN, why_not = launchers.find_python(ARGS.torch)
    if OWN is None:
        launchers.say(f"skipped: {why_not}; tools/setup.sh installs one")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="keel-torches-") as FOLDER:
        try_all(OWN, FOLDER)
