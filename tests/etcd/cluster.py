"""A real etcd cluster on this machine, for as long as it is entered.

Promises   members on free ports of 127.0.0.1, with their data in memory (/dev/shm) if there is
           some; all of them are started and have a leader once it is entered. One that does not
           come up fails the test with its last words. Leaving it kills them, and removes the data.
Does not   outlive its test by more than the members that a killed test leaves behind.
"""
import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
from free_port import free_port  # noqa: E402

READY_LIMIT_S = 60
ASK_LIMIT_S = 5
NONE = "etcd is not installed here: apt-get install etcd-server"


def why_not():
    """What keeps this machine from starting a cluster; None: nothing does."""
    if shutil.which("etcd") is None:
        return NONE
    version = subprocess.run(["etcd", "--version"], capture_output=True, text=True, check=False)
    if "Version: 3.3" in version.stdout:
        return "etcd 3.3 has no gateway at /v3; 3.4 or newer is needed"
    return None


def make_certificates(folder, name):
    """(authority, certificate, key): files that openssl makes; good for 127.0.0.1."""
    paths = {what: os.path.join(folder, f"{name}-{what}") for what in
             ("ca.pem", "ca.key", "own.pem", "own.key")}
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "30", "-subj"]
    for words in ([*make, f"/CN={name}", "-keyout", paths["ca.key"], "-out", paths["ca.pem"]],
                  [*make, f"/O={name}", "-keyout", paths["own.key"], "-out", paths["own.pem"],
                   "-CA", paths["ca.pem"], "-CAkey", paths["ca.key"], "-addext",
                   "subjectAltName=IP:127.0.0.1", "-addext",
                   "basicConstraints=critical,CA:FALSE"]):
        subprocess.run(words, check=True, capture_output=True)
    return paths["ca.pem"], paths["own.pem"], paths["own.key"]


class Cluster:
    """`tls`: what make_certificates() gave; members want a certificate of their clients, too."""

    def __init__(self, members=3, tls=None):
        self.tls, self.password = tls, None
        self.ports = [(free_port(), free_port()) for _ in range(members)]   # clients', peers'
        self.processes = [None] * members

    def __enter__(self):
        self.folder = tempfile.mkdtemp(
            prefix="keel-etcd-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        try:
            for number in range(len(self.ports)):
                self.start(number)
            for number in range(len(self.ports)):
                self.await_ready(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for number in range(len(self.ports)):
            self.kill(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, number):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.ports[number][0]}"

    def endpoints(self):
        return ",".join(f"127.0.0.1:{port}" for port, _ in self.ports)

    def start(self, number):
        def peer(one):
            return f"http://127.0.0.1:{self.ports[one][1]}"
        everyone = ",".join(f"m{one}={peer(one)}" for one in range(len(self.ports)))
        name = f"m{number}"
        words = ["etcd", "--name", name, "--data-dir", os.path.join(self.folder, name),
                 "--listen-client-urls", self.url(number),
                 "--advertise-client-urls", self.url(number),
                 "--listen-peer-urls", peer(number), "--initial-advertise-peer-urls", peer(number),
                 "--initial-cluster", everyone, "--logger", "zap", "--log-level", "warn"]
        if self.tls:
            authority, certificate, key = self.tls
            words += ["--cert-file", certificate, "--key-file", key, "--trusted-ca-file",
                      authority, "--client-cert-auth"]
        with open(self.log(number), "a", encoding="utf-8") as log:
            self.processes[number] = subprocess.Popen(words, stdout=log, stderr=log)

    def log(self, number):
        return os.path.join(self.folder, f"m{number}.log")

    def await_ready(self, number):
        end = time.monotonic() + READY_LIMIT_S
        while True:
            try:
                return self.ask("/v3/kv/range", {"key": "YQ=="}, number)
            except OSError as why:
                if time.monotonic() > end:
                    with open(self.log(number), encoding="utf-8") as log:
                        raise AssertionError(f"member {number}: {why}\n{log.read()[-2000:]}") \
                            from None
            time.sleep(0.05)

    def send(self, number, what):
        self.processes[number].send_signal(what)

    def kill(self, number):
        process = self.processes[number]
        if process is None:
            return
        process.kill()
        process.wait()
        self.processes[number] = None

    def ask(self, path, question, number=None):
        """What a member says that lives; OSError: it does not answer."""
        alive = [one for one, process in enumerate(self.processes) if process]
        number = alive[0] if number is None else number
        context = None
        if self.tls:
            context = ssl.create_default_context(cafile=self.tls[0])
            context.load_cert_chain(self.tls[1], self.tls[2])
        headers = {}
        if self.password and not path.startswith("/v3/auth/authenticate"):
            token = self.ask("/v3/auth/authenticate",
                             {"name": "root", "password": self.password}, number)["token"]
            headers["Authorization"] = token
        request = urllib.request.Request(self.url(number) + path, json.dumps(question).encode(),
                                         headers)
        with urllib.request.urlopen(request, timeout=ASK_LIMIT_S, context=context) as answer:
            return json.load(answer)

    def leader(self):
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            for number, process in enumerate(self.processes):
                if process is None:
                    continue
                try:
                    status = self.ask("/v3/maintenance/status", {}, number)
                except OSError:
                    continue
                if status["header"]["member_id"] == status.get("leader"):
                    return number
            time.sleep(0.05)
        raise AssertionError("no member leads")

    def keys(self, prefix="keel/"):
        def coded(text):
            return base64.b64encode(text.encode()).decode()
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.ask("/v3/kv/range", {"key": coded(prefix), "range_end": coded(end),
                                           "keys_only": True})
        return [base64.b64decode(one["key"]).decode() for one in answer.get("kvs", [])]

    def enable_users(self, password):
        """From now on only the user root is let in."""
        self.ask("/v3/auth/user/add", {"name": "root", "password": password})
        self.ask("/v3/auth/role/add", {"name": "root"})
        self.ask("/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.ask("/v3/auth/enable", {})
        self.password = password

