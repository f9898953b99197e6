"""Ceph's gateway of this machine, which speaks S3: a monitor, a store in memory and the gateway,
for as long as the process that starts them lives. Debian: radosgw ceph-mon ceph-osd ceph-common."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))

from free_port import free_port  # noqa: E402
from weed import die_with_us  # noqa: E402

PROGRAMS = ("monmaptool", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph")
LIMIT_S = 120
STORE_BYTES = 2 << 30
CONF = """[global]
fsid = {fsid}
mon host = [v1:127.0.0.1:{monitor}]
auth cluster required = none
auth service required = none
auth client required = none
ms bind msgr2 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
pid file = {folder}/$name.pid
mon data = {folder}/mon
mon allow pool size one = true
mon max pg per osd = 1000
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = {store_bytes}
osd max object name len = 256
osd max object namespace len = 64
osd class update on start = false
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{gateway}
keyring = /dev/null
"""


def missing():
    """Programs that are not there."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


class Ceph:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="keel-ceph-")
        self.running = []
        self.keys = {"AWS_ACCESS_KEY_ID": "TESTKEYID", "AWS_SECRET_ACCESS_KEY": "test-secret"}
        monitor, gateway = free_port(), free_port()
        self.url = f"http://127.0.0.1:{gateway}"
        self.fsid = str(uuid.uuid4())
        self.environment = dict(os.environ, CEPH_CONF=f"{self.folder}/ceph.conf")
        with open(f"{self.folder}/ceph.conf", "w", encoding="ascii") as file:
            file.write(CONF.format(folder=self.folder, fsid=self.fsid, monitor=monitor,
                                   gateway=gateway, store_bytes=STORE_BYTES))
        try:
            self._begin(monitor)
        except BaseException:
            self.close()
            raise

    def _begin(self, monitor):
        for name in ("mon", "osd"):
            os.mkdir(f"{self.folder}/{name}")
        self._run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a",
                  f"[v1:127.0.0.1:{monitor}]", f"{self.folder}/monmap")
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{self.folder}/monmap",
                  "--keyring", "/dev/null")
        self._start("ceph-mon", "-i", "a", "-f")
        store = str(uuid.uuid4())
        self._run("ceph", "osd", "new", store)   # waits for the monitor
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", store)
        self._start("ceph-osd", "-i", "0", "-f")
        self._start("radosgw", "-n", "client.rgw", "-f")
        self._await()
        self._run("radosgw-admin", "user", "create", "--uid=test", "--display-name=test",
                  f"--access-key={self.keys['AWS_ACCESS_KEY_ID']}",
                  f"--secret-key={self.keys['AWS_SECRET_ACCESS_KEY']}")

    def _run(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {(done.stdout + done.stderr)[-3000:]}")

    def _start(self, *command):
        with open(f"{self.folder}/{command[0]}.said", "wb") as said:
            self.running.append(subprocess.Popen(command, env=self.environment, stdout=said,
                                                 stderr=said, preexec_fn=die_with_us))

    def _await(self):
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                with urllib.request.urlopen(self.url, timeout=5):
                    return
            except (urllib.error.URLError, OSError) as error:
                ended = [one.args[0] for one in self.running if one.poll() is not None]
                if ended or time.monotonic() > end:
                    raise RuntimeError(f"the gateway did not come up; ended: {ended}; "
                                       f"{self._said()}") from error
                time.sleep(0.1)

    def _said(self):
        words = ""
        for one in self.running:
            with open(f"{self.folder}/{one.args[0]}.said", encoding="utf-8") as file:
                words += f"\n{one.args[0]}: {file.read()[-1500:]}"
        return words

    def close(self):
        for one in self.running:
            one.kill()
            one.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
