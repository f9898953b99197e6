"""What tests/s3.sh does in anybody's bucket, in those of two more stores: Ceph's gateway and moto,
a server for testing, which has AWS's ways to keys as well. Runs those that are there, says which
are not, and skips where none is.

usage: other_stores_test.py --build DIR
With --python EXE it goes on in that one, which has boto3.
"""
import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

import points

points.go_on_with_python()

import boto3  # noqa: E402

import ceph  # noqa: E402
from free_port import free_port  # noqa: E402
from weed import die_with_us  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
LIMIT_S = 600
READY_LIMIT_S = 60
BUCKET = "tried"


class Moto:
    PROGRAM = os.path.join(os.path.dirname(sys.executable), "moto_server")

    def __init__(self):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.keys = {"AWS_ACCESS_KEY_ID": "TESTKEYID", "AWS_SECRET_ACCESS_KEY": "test-secret"}
        self.process = subprocess.Popen([self.program(), "-H", "127.0.0.1", "-p", str(port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=die_with_us)

    @classmethod
    def program(cls):
        return cls.PROGRAM if os.access(cls.PROGRAM, os.X_OK) else shutil.which("moto_server")

    def close(self):
        self.process.kill()
        self.process.wait()


def make_bucket(store):
    client = boto3.client(
        "s3", endpoint_url=store.url, region_name="us-east-1",
        aws_access_key_id=store.keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=store.keys["AWS_SECRET_ACCESS_KEY"])
    end = time.monotonic() + READY_LIMIT_S
    while True:
        try:
            return client.create_bucket(Bucket=BUCKET)
        except Exception:   # it is not there yet
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def environment_of(store, **more):
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return dict(others, AWS_ENDPOINT_URL=store.url, AWS_REGION="us-east-1", **more)


def try_in(store, build):
    make_bucket(store)
    environment = environment_of(store, **store.keys, AWS_EC2_METADATA_DISABLED="true",
                                 KEEL_TRY_PYTHON=sys.executable)
    return subprocess.run([f"{ROOT}/tests/s3.sh", "--build", build, f"s3://{BUCKET}/try"],
                          env=environment, timeout=LIMIT_S, check=False).returncode


def try_keys(store, build):
    """Keys of a role that a web token opens, and those of a virtual machine: 0 where both open the
    bucket, in which nothing is saved below that name."""
    with tempfile.NamedTemporaryFile("w") as token:
        token.write("web-token")
        token.flush()
        ways = {"a web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": token.name,
                                   "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/train",
                                   "AWS_EC2_METADATA_DISABLED": "true"},
                "a virtual machine": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": store.url}}
        for name, settings in ways.items():
            listed = subprocess.run(
                [f"{build}/bin/keel", "ls", f"s3://{BUCKET}/nothing"], capture_output=True,
                text=True, timeout=LIMIT_S, check=False,
                env=environment_of(store, HOME=os.path.dirname(token.name), **settings))
            if "is not there" not in listed.stderr:
                print(f"keys of {name}: {listed.stderr}", flush=True)
                return 1
            print(f"keys of {name}: well", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    arguments = parser.parse_args()
    missing = {"Ceph": ", ".join(ceph.missing()),
               "moto": "" if Moto.program() else "moto_server"}
    codes = []
    for name, make in (("Ceph", ceph.Ceph), ("moto", Moto)):
        if missing[name]:
            print(f"{name}: skipped, there is no {missing[name]}", flush=True)
            continue
        print(f"{name}:", flush=True)
        with contextlib.closing(make()) as store:
            codes.append(try_in(store, arguments.build))
            if name == "moto":
                codes.append(try_keys(store, arguments.build))
    if not codes:
        return 77
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
