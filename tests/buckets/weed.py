"""A SeaweedFS of this machine, which speaks S3, for as long as the process that starts it lives."""
import concurrent.futures
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))

from free_port import free_port  # noqa: E402

READY_LIMIT_S = 120
KEYS = {"AWS_ACCESS_KEY_ID": "TESTKEYID", "AWS_SECRET_ACCESS_KEY": "test-secret",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"}
PR_SET_PDEATHSIG = 1


def program():
    return os.environ.get("KEEL_WEED") or os.path.join(os.path.dirname(sys.executable), "weed")


def die_with_us():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Weed:
    def __init__(self):
        where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="keel-weed-", dir=where)
        identity = {"identities": [{"name": "test", "actions": ["Admin"], "credentials": [
            {"accessKey": KEYS["AWS_ACCESS_KEY_ID"],
             "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}]}]}
        with open(os.path.join(self.folder, "identity.json"), "w") as file:
            json.dump(identity, file)
        os.mkdir(os.path.join(self.folder, "data"))
        s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc = (
            free_port() for _ in range(8))
        self.port = s3
        self.log = open(os.path.join(self.folder, "log"), "w")
        self.command = [
            program(), "-logtostderr=true", "server", f"-dir={self.folder}/data",
            "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-s3",
            f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}", f"-master.port={master}",
            f"-master.port.grpc={master_grpc}", f"-volume.port={volume}",
            f"-volume.port.grpc={volume_grpc}", f"-filer.port={filer}",
            f"-filer.port.grpc={filer_grpc}", f"-s3.config={self.folder}/identity.json",
            f"-filer.localSocket={self.folder}/filer.sock",
            f"-s3.localSocket={self.folder}/s3.sock",
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-volume.max=100",
            "-master.volumeSizeLimitMB=128"]
        self.url = f"http://127.0.0.1:{s3}"
        self.starter = concurrent.futures.ThreadPoolExecutor(1)
        self._start()

    def _start(self):
        # The server dies with the thread that starts it, so that one stays.
        self.process = self.starter.submit(
            subprocess.Popen, self.command, stdout=self.log, stderr=self.log, cwd=self.folder,
            preexec_fn=die_with_us).result()

    def client(self):
        import boto3
        from botocore.config import Config
        return boto3.client("s3", endpoint_url=self.url, region_name="us-east-1",
                            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
                            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
                            config=Config(retries={"max_attempts": 3}))

    def restart(self, bucket):
        """Kills it, and returns once it takes and gives objects of that bucket again."""
        self.process.kill()
        self.process.wait()
        self._start()
        self.make_bucket(bucket)

    def make_bucket(self, name):
        """Returns once an object can be put there and read: its parts come up one by one."""
        client, end = self.client(), time.monotonic() + READY_LIMIT_S
        while True:
            try:
                if name not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
                    client.create_bucket(Bucket=name)
                client.put_object(Bucket=name, Key="ready", Body=b"yes")
                client.get_object(Bucket=name, Key="ready")["Body"].read()
                client.delete_object(Bucket=name, Key="ready")
                return client
            except Exception as error:
                if time.monotonic() > end or self.process.poll() is not None:
                    with open(os.path.join(self.folder, "log")) as file:
                        raise RuntimeError(f"SeaweedFS did not come up: {error}\n"
                                           f"{file.read()[-3000:]}") from error
                time.sleep(0.05)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.starter.shutdown()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
