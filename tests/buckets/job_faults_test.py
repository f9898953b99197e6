"""Does one request of a training job wrong on its way to a real SeaweedFS, each in each way that
proxy.py knows: of a job that saves, and of one that goes on from what was saved.

After each: the job has ended with 0 and the bits of a quiet run, or says why not; what looks
committed is whole. Then the same command, with nothing in its way, ends with 0 and those bits.

usage: job_faults_test.py --keelrun EXE --program EXE [--kills sender|server] [--share N] [--seed S]
                          [--jobs J] [--only TRIAL/AT/FAULT]
With --kills it kills the worker that sent the request, or the server, and does no other fault; a
server comes back with what it had, and has one job at a time.
With --python EXE it goes on in that one, which has boto3; it skips where there is none.
"""
import argparse
import collections
import itertools
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/python"))

import points  # noqa: E402

points.go_on_with_python()

import numpy as np  # noqa: E402

import bucket as buckets  # noqa: E402
import evenkeel_ckpt  # noqa: E402
import proxy as proxies  # noqa: E402
import weed  # noqa: E402
from bucket import BUCKET  # noqa: E402

LIMIT_S = 240          # of one job, however its requests went
STEPS, SAVED = 12, 8
EXITS = (0, 1, 3, 75, 77, 78)   # of a job that nobody kills


class Wrong(Exception):
    pass


Trial = collections.namedtuple("Trial", "name begins_with")
TRIALS = [Trial("save", None), Trial("resume", SAVED)]


class Field(buckets.Bucket):
    """One server, and what a job says and saves that nobody disturbs."""

    def __init__(self, keelrun, program, folder):
        super().__init__()
        self.keelrun, self.program = keelrun, program
        self.names = itertools.count()
        os.environ.update(weed.KEYS, AWS_ENDPOINT_URL_S3=self.server.url)   # for evenkeel_ckpt
        here = os.path.join(folder, "here")
        self.expected = self.job(here, self.server.url).last
        self.arrays = evenkeel_ckpt.load(f"{here}@{STEPS}")
        if self.job(f"s3://{BUCKET}/begun", self.server.url, steps=SAVED).code != 0:
            raise Wrong("a job without a fault does not save")

    Ended = collections.namedtuple("Ended", "code last log")

    def job(self, place, url, proxy=None, steps=STEPS):
        environment = dict(os.environ, AWS_ENDPOINT_URL_S3=url)
        command = [self.keelrun, "--standalone", "--nproc-per-node=2", "--max-restarts=3",
                   "--no-python", self.program, f"--steps={steps}", "--lanes=2", "--save-every=4",
                   "--keep=2", f"--checkpoint-dir={place}"]
        with subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            if proxy is not None:
                proxy.client = process
                proxy.has_client.set()
            try:
                out, err = process.communicate(timeout=LIMIT_S)   # all of its workers have ended
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                _, err = process.communicate()
                raise Wrong(f"the job did not end within {LIMIT_S} s: {err[-3000:]}") from None
        last = {line[line.index("final step="):] for line in out.splitlines()
                if "final step=" in line}
        if len(last) > 1:
            raise Wrong(f"workers ended with different bits: {last}")
        return self.Ended(process.returncode, next(iter(last), None), err)

    def prepare(self, trial):
        prefix = f"point-{next(self.names)}"
        if trial.begins_with is not None:
            self.copy("begun", prefix, lambda key: f"step-{trial.begins_with:09d}" in key)
        return prefix

    def count(self, trial):
        proxy = self.proxy()
        try:
            ended = self.job(f"s3://{BUCKET}/{self.prepare(trial)}", proxy.url, proxy)
        finally:
            proxy.close()
        if ended.code != 0 or ended.last != self.expected:
            raise Wrong(f"{trial.name} without a fault: {ended}")
        return list(proxy.seen)

    def verify_all(self, prefix):
        """The newest step that looks committed; all that do are whole."""
        newest = None
        for key in sorted(self.objects(prefix)):
            if not key.endswith("/manifest.json"):
                continue
            newest = int(key.split("/")[-2].removeprefix("step-"))
            evenkeel_ckpt.load(f"s3://{BUCKET}/{prefix}@{newest}")
        return newest

    def point(self, trial, at, fault):
        """Returns how it ended, or nothing if no request was struck."""
        prefix = self.prepare(trial)
        place = f"s3://{BUCKET}/{prefix}"
        proxy = self.proxy()
        proxy.plan(at, fault)
        try:
            ended = self.job(place, proxy.url, proxy)
        finally:
            proxy.close()
        struck = "nothing" if proxy.struck is None else proxy.struck.text()
        try:
            self.judge(prefix, place, ended, fault)
        except Exception as error:
            raise Wrong(f"{trial.name}/{at}/{fault} ({struck}): {error}; the job ended with "
                        f"{ended.code}: {ended.log[-3000:]}") from error
        return None if proxy.struck is None else ended.code

    def judge(self, prefix, place, ended, fault):
        if fault not in ("kill-before", "kill-after") and ended.code not in EXITS:
            raise Wrong("that is no exit code for this")
        if weed.KEYS["AWS_SECRET_ACCESS_KEY"] in ended.log:
            raise Wrong("it tells the secret")
        if ended.last not in (None, self.expected):
            raise Wrong(f"other bits: {ended.last} instead of {self.expected}")
        newest = self.verify_all(prefix)
        if ended.code == 0 and (newest != STEPS or ended.last is None):
            raise Wrong(f"it says that it is done, and saved step {newest}: {ended.last}")
        again = self.job(place, self.server.url)
        if again.code != 0 or again.last not in (None, self.expected):
            raise Wrong(f"once more, it ends with {again.code} and {again.last}: "
                        f"{again.log[-3000:]}")
        if self.verify_all(prefix) != STEPS:
            raise Wrong(f"once more, it saved {self.verify_all(prefix)}")
        read = evenkeel_ckpt.load(f"{place}@{STEPS}")
        for name, value in self.arrays.items():
            if not np.array_equal(read[name], value):
                raise Wrong(f"step {STEPS} has other values in {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keelrun", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--kills", choices=("sender", "server"))
    points.add_options(parser, seed=int.from_bytes(os.urandom(4), "little"))
    arguments = parser.parse_args()
    points.exit_if_no_server()
    if arguments.kills == "server":
        arguments.jobs = 1

    def is_wanted(point):
        if arguments.kills:
            return point[2].startswith(f"kill-{arguments.kills}")
        # No job ends well without its store.
        return not point[2].startswith((*proxies.OF_JOBS, proxies.AWAY))

    with tempfile.TemporaryDirectory() as folder:
        field = Field(arguments.keelrun, arguments.program, folder)
        return points.run(field, TRIALS, arguments, is_wanted, told_codes=EXITS[1:],
                          not_struck_most=0.5)


if __name__ == "__main__":
    sys.exit(main())
