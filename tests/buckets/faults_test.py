"""Does one request wrong between keel and a real SeaweedFS, each request in turn, in each way that
proxy.py knows; and judges by another reader: boto3 and tools/python/evenkeel_ckpt.py.

After each: the checkpoint that was there before verifies, none of its objects was written again,
and success means that what was asked for is there. Then gc, an hour later and with nothing in its
way, leaves nothing over.

usage: faults_test.py --keel EXE [--share N] [--seed S] [--jobs J] [--only TRIAL/AT/FAULT]
With --python EXE it goes on in that one, which has boto3; it skips where there is none.
"""
import argparse
import collections
import itertools
import os
import re
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

SLOW = "black-hole"
READING = ("verify", "repair")
LIMIT_S = 150          # of one command, however its request went
QUIET_S = 2 * 3600     # what nobody has gone on with for an hour is left over
OLD, NEW = 10, 20


class Wrong(Exception):
    pass


def safetensors(path, seed):
    import safetensors.numpy
    values = np.random.default_rng(seed)
    safetensors.numpy.save_file(
        {f"layer{i}.weight": values.standard_normal((64, 300 + i)).astype(np.float32)
         for i in range(6)}, path)


# What is tried: the words of keel, where ROOT is the prefix in the bucket, and whether success
# means that step NEW is there.
Trial = collections.namedtuple("Trial", "name words brings removes")
TRIALS = [
    Trial("cp", ["cp", "{new}", "ROOT"], True, False),
    Trial("import", ["import", "{tensors}", "ROOT", "--step", "20"], True, False),
    Trial("gc", ["gc", "ROOT", "--keep", "1", "--partial", "all"], False, True),
    Trial("verify", ["verify", "ROOT@10"], False, False),
    Trial("repair", ["repair", "ROOT@10", "{out}"], False, False),
    Trial("pin", ["pin", "ROOT@10"], False, False),
]


class Field(buckets.Bucket):
    """One server, what is copied to it, and what each command says without a fault."""

    def __init__(self, keel, folder):
        super().__init__()
        self.keel, self.folder = keel, folder
        self.names = itertools.count()
        os.environ.update(weed.KEYS, AWS_ENDPOINT_URL_S3=self.server.url)
        self.tensors = os.path.join(folder, "new.safetensors")
        old = os.path.join(folder, "old.safetensors")
        safetensors(old, 1)
        safetensors(self.tensors, 2)
        self.here = os.path.join(folder, "root")
        for file, step in ((old, OLD), (self.tensors, NEW)):
            self.run(["import", file, self.here, "--step", str(step)], self.server.url)
        self.arrays = {step: evenkeel_ckpt.load(f"{self.here}@{step}") for step in (OLD, NEW)}
        for step in (OLD, NEW):
            self.run(["cp", f"{self.here}@{step}", f"s3://{BUCKET}/whole"], self.server.url)

    def environment(self, url):
        return dict(os.environ, AWS_ENDPOINT_URL_S3=url)

    def run(self, words, url, proxy=None):
        with subprocess.Popen([self.keel, *words], env=self.environment(url), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            if proxy is not None:
                proxy.client = process
                proxy.has_client.set()
            try:
                out, err = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Wrong(f"keel {' '.join(words)} did not end within {LIMIT_S} s") from None
        if proxy is None and process.returncode != 0:
            raise Wrong(f"keel {' '.join(words)} ended with {process.returncode}: {err}")
        return process.returncode, out, err

    def prepare(self, trial):
        """A prefix of its own, with the old checkpoint, and for gc with both."""
        prefix = f"point-{next(self.names)}"
        steps = (OLD, NEW) if trial.removes else (OLD,)
        self.copy("whole", prefix, lambda key: any(f"step-{step:09d}" in key for step in steps))
        return prefix

    def words(self, trial, prefix):
        return [word.format(new=f"{self.here}@{NEW}", tensors=self.tensors,
                            out=os.path.join(self.folder, f"{prefix}-out"))
                .replace("ROOT", f"s3://{BUCKET}/{prefix}") for word in trial.words]

    def verify(self, prefix, step):
        read = evenkeel_ckpt.load(f"s3://{BUCKET}/{prefix}@{step}")
        for name, value in self.arrays[step].items():
            if not np.array_equal(read[name], value):
                raise Wrong(f"step {step} has other values in {name}")

    def verify_all(self, prefix, objects, steps):
        """What looks committed is whole."""
        for step in steps:
            if f"{prefix}/step-{step:09d}/manifest.json" in objects:
                self.verify(prefix, step)

    def count(self, trial):
        proxy = self.proxy()
        code, _, err = self.run(self.words(trial, self.prepare(trial)), proxy.url, proxy)
        proxy.close()
        if code != 0:
            raise Wrong(f"{trial.name} without a fault: {err}")
        return list(proxy.seen)

    def point(self, trial, at, fault):
        """Returns the exit code, or nothing if no request was struck."""
        prefix = self.prepare(trial)
        before = self.objects(prefix)
        proxy = self.proxy()
        proxy.plan(at, fault)
        try:
            code, out, err = self.run(self.words(trial, prefix), proxy.url, proxy)
        finally:
            proxy.close()
        if proxy.struck is None:
            if code != 0:
                raise Wrong(f"{trial.name} without a fault ended with {code}: {out}{err}")
            return None
        try:
            self.judge(trial, prefix, before, code, out, err, fault)
        except Exception as error:
            raise Wrong(f"{trial.name}, request {at} ({proxy.struck.text()}), {fault}: {error}; "
                        f"keel ended with {code}: {out}{err}") from error
        return code

    def clean(self, prefix):
        """What gc says an hour later: until then, somebody may still be writing."""
        proxy = proxies.Proxy(self.server.port)
        proxy.older_s = QUIET_S
        _, said, _ = self.run(["gc", f"s3://{BUCKET}/{prefix}", "--keep", "9", "--partial", "all"],
                              proxy.url)
        proxy.close()
        return said

    def judge(self, trial, prefix, before, code, out, err, fault):
        killed = fault.startswith("kill")
        ends = (0, 3)
        if trial.name in READING and fault == "flip-answer":
            ends = (0, 1, 3)   # what was changed on its way is found, and called damage
        elif trial.name in READING and fault == proxies.AWAY:
            ends = (3,)        # what has not come says nothing
        if not killed and code not in ends:
            raise Wrong("that is no exit code for this")
        if code == 3 and len(err.strip()) < 20:
            raise Wrong("it says too little")
        if weed.KEYS["AWS_SECRET_ACCESS_KEY"] in err:
            raise Wrong("it tells the secret")
        kept = NEW if trial.removes else OLD
        self.verify(prefix, kept)
        now = self.objects(prefix)
        written = f"step-{kept:09d}/"
        for key, value in before.items():
            if written in key and now.get(key) != value:
                raise Wrong(f"{key} was written again: {value}, {now.get(key)}")
        if code == 0 and trial.brings:
            self.verify(prefix, NEW)
        if code == 0 and trial.name == "pin" and f"{prefix}/step-{OLD:09d}/pinned" not in now:
            raise Wrong(f"it says that it pinned what is not: {sorted(now)}")
        steps = (kept,) if trial.removes and fault == "flip-request" else (OLD, NEW)
        self.verify_all(prefix, now, steps)
        # This server removes another key if the name is changed on its way, and says so.
        claims = re.search(rf"^ *{OLD}  removed", out, re.MULTILINE) and fault != "flip-request"
        if claims and any(f"step-{OLD:09d}" in key for key in now):
            raise Wrong(f"it says that it removed what is there: {sorted(now)}")
        said = self.clean(prefix)
        self.verify(prefix, kept)
        now = self.objects(prefix)
        self.verify_all(prefix, now, steps)
        left = self.uploads(prefix)
        if left:
            raise Wrong(f"after gc there are unfinished uploads: {left}; it said: {said}")
        for key in now:
            folder = key[len(prefix) + 1:].split("/")[0]
            manifest = f"{prefix}/{folder}/manifest.json"
            if "/" in key[len(prefix) + 1:] and manifest not in now:
                raise Wrong(f"after gc {key} is left over; it said: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keel", required=True)
    points.add_options(parser, seed=1)
    parser.add_argument("--quick", action="store_true", help="without what takes 20 s and more")
    arguments = parser.parse_args()
    points.exit_if_no_server()

    def is_wanted(point):
        fault = point[2]
        return not fault.startswith(proxies.OF_JOBS) and not (
            arguments.quick and fault.startswith(SLOW))

    with tempfile.TemporaryDirectory() as folder:
        return points.run(Field(arguments.keel, folder), TRIALS, arguments, is_wanted)


if __name__ == "__main__":
    sys.exit(main())
