#!/usr/bin/env python3
"""The Python package in a bucket of a real SeaweedFS: a job saves there, stops and goes on, and
ek.load() and ek.save() read and write there; boto3 judges what is there. Skips where there is none.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, name) for name in
                ("../python/package", "../dropin")]

import points  # noqa: E402

points.go_on_with_python()

import launchers  # noqa: E402
import scripts  # noqa: E402
import weed  # noqa: E402
from bucket import BUCKET, Bucket  # noqa: E402

OF_WEIGHTS = """
import sys
import evenkeel as ek
import torch
there, here, out = sys.argv[1:4]
read, expected = ek.load(there), ek.load(here)
assert list(read) == list(expected), (list(read), list(expected))
assert all(torch.equal(read[name], expected[name]) for name in expected)
ek.save(read, out)
try:
    ek.save(read, out)
    sys.exit("what is there was replaced")
except Exception as error:
    assert "is there already; replace=True replaces it" in str(error), error
ek.save(read, out, replace=True)
job = ek.Job(steps=1, lanes=2, lane_batch=2, log_every=0, init_from=out)
model = torch.nn.Sequential()
for name in ("layer0", "layer1", "layer2"):
    weight = read[f"{name}.weight"]
    model.add_module(name, torch.nn.Linear(weight.shape[1], weight.shape[0]))
job.prepare(model, ek.SGD(), ek.synthetic_classes(16, seed=1))
for lane, (x, y) in enumerate(job):
    if lane == 0:
        assert all(torch.equal(model.state_dict()[name], read[name]) for name in read)
    job.backward(torch.nn.functional.cross_entropy(model(x), y))
assert job.result.step == 1, job.result
"""


class InABucket(scripts.Case):
    @classmethod
    def setUpClass(cls):
        cls.bucket = Bucket()
        cls.addClassCleanup(cls.bucket.close)

    def there(self, name):
        return f"s3://{BUCKET}/{name}"

    def environment(self):
        return weed.KEYS | {"AWS_ENDPOINT_URL": self.bucket.server.url}

    def run_there(self, command):
        run = scripts.end(scripts.start(command, **self.environment()))
        self.assertEqual(run.code, 0, run)
        return run

    def train(self, workers, *options):
        script = scripts.python("minimal.py", *options)
        return self.run_there(scripts.under_keelrun(workers, script) if workers else script)

    def test_a_job_goes_on_there_with_the_same_bits(self):
        here, there = os.path.join(self.folder, "here"), self.there("job")
        quiet = self.train(0, f"--checkpoint-dir={here}")
        self.train(2, f"--checkpoint-dir={there}", "--save-every=20", "--steps=40")
        resumed = self.train(3, f"--checkpoint-dir={there}")
        self.assertIn(f"from={there}/step-000000040", resumed.out)
        self.assertEqual(set(resumed.lines), set(quiet.lines), resumed)
        weights = f"{there}-out/model.safetensors"
        self.run_there([scripts.ARGS.python, "-B", "-c", OF_WEIGHTS, f"{there}@latest", here,
                        weights])
        body = self.bucket.client.get_object(
            Bucket=BUCKET, Key="job-out/model.safetensors")["Body"].read()
        header = json.loads(body[8:8 + int.from_bytes(body[:8], "little")])
        self.assertIn("layer0.weight", header)
        self.assertEqual(self.bucket.uploads("job") + self.bucket.uploads("job-out"), [])


if __name__ == "__main__":
    points.exit_if_no_server()
    scripts.main(__doc__, launchers.find_python)
