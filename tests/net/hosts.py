"""Hosts of a test: network namespaces on one switch, and launchers in them.

Promises   nothing outside the namespaces is touched; leaving Lan deletes them and kills whoever is
           in them, and fails where somebody outlived the launchers, also outside the namespaces.
           Every wait has a limit and tells what everyone printed.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../harness"))
import marked  # noqa: E402

HANG_LIMIT_S = 90
PORT = 29400


def why_not():
    """What keeps this machine from making hosts; None: nothing does."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    name = f"keel-try-{os.getpid()}"
    try:
        for words in (["netns", "add", name],
                      ["-n", name, "link", "add", "sw", "type", "bridge"],
                      ["-n", name, "link", "add", "name", "veth0", "type", "veth", "peer",
                       "name", "veth1"]):
            done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"ip {' '.join(words)}: {done.stderr.strip()}"
        return None
    except FileNotFoundError:
        return "the program ip is not installed"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


def keelrun_words(lan, number, keelrun, *, nnodes, workers, job):
    """What starts a launcher on that host, up to its worker's command. Host 0 has the store."""
    conf = "last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3"
    conf += f",is_host={int(number == 0)}"
    return [keelrun, f"--nnodes={nnodes}", f"--nproc-per-node={workers}", "--rdzv-backend=c10d",
            f"--rdzv-id={job}", f"--rdzv-endpoint={lan.address(0)}:{PORT}",
            f"--rdzv-conf={conf}", "--max-restarts=20", "--no-python"]


class Launcher:
    """One launcher on one host, with all it prints."""

    def __init__(self, name, command, environment, folder):
        self.name, self.lines = name, []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env=environment, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip())
                self.changed.notify_all()

    def find(self, pattern, since=0):
        for number, line in enumerate(self.lines[since:], since):
            found = re.search(pattern, line)
            if found:
                return number, found
        return None

    def mark(self):
        with self.changed:
            return len(self.lines)

    def wait_for(self, pattern, since=0, limit_s=HANG_LIMIT_S):
        """The first match among the lines from number `since` on."""
        with self.changed:
            self.changed.wait_for(lambda: self.find(pattern, since), limit_s)
            found = self.find(pattern, since)
        if not found:
            raise AssertionError(f"{self.name}: no line '{pattern}' in {limit_s} s\n{self.text()}")
        return found[1]

    def end(self, limit_s=HANG_LIMIT_S):
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name}: no end in {limit_s} s\n{self.text()}") from None
        self.reader.join(5)
        return code

    def kill(self):
        if self.process.poll() is None:   # else the number may be another's by now
            marked.kill(self.process.pid)
        self.process.wait()

    def text(self):
        return "\n".join(f"  {self.name}| {line}" for line in self.lines[-60:])


class Lan:
    """`count` hosts, 10.9.0.1 and so on."""

    def __init__(self, count):
        self.temporary = tempfile.TemporaryDirectory(prefix="keel-net-")
        self.folder = self.temporary.name
        self.prefix = f"keel-{os.getpid()}-"
        self.switch = self.prefix + "sw"
        self.hosts = [f"{self.prefix}h{number}" for number in range(count)]
        self.launchers = []
        self.mark = ("KEEL_NET_RUN", uuid.uuid4().hex)

    def __enter__(self):
        try:
            ip("netns", "add", self.switch)
            ip("-n", self.switch, "link", "add", "sw", "type", "bridge")
            ip("-n", self.switch, "link", "set", "sw", "up")
            for number, host in enumerate(self.hosts):
                self.add_host(number, host)
        except BaseException:
            self.remove()
            raise
        return self

    def add_host(self, number, host):
        ip("netns", "add", host)
        ip("-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{number}",
           "netns", self.switch)
        ip("-n", self.switch, "link", "set", f"port{number}", "master", "sw", "up")
        ip("-n", host, "link", "set", "lo", "up")
        ip("-n", host, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")

    def __exit__(self, kind=None, *_):
        # Only of a scenario that went well: all its launchers have ended, or were killed.
        left = marked.await_none_marked(*self.mark, HANG_LIMIT_S) if kind is None else {}
        self.remove()
        if left:
            raise AssertionError(f"these outlived their launchers: {left}")

    def remove(self):
        for host in [*self.hosts, self.switch]:
            pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True,
                                  check=False).stdout.split()
            for pid in map(int, pids):
                marked.kill(pid)
            subprocess.run(["ip", "netns", "del", host], capture_output=True, check=False)
        for launcher in self.launchers:
            launcher.process.wait()
            launcher.reader.join(5)
            launcher.process.stdout.close()
        self.temporary.cleanup()

    @staticmethod
    def address(number):
        return f"10.9.0.{number + 1}"

    def environment(self):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_"))}
        clean["TMPDIR"] = self.folder
        return clean | dict([self.mark])

    def start(self, number, command):
        launcher = Launcher(f"host{number}", ["ip", "netns", "exec", self.hosts[number], *command],
                            self.environment(), self.folder)
        self.launchers.append(launcher)
        return launcher

    def inside(self, number, code):
        """Runs Python code on the host."""
        return subprocess.run(["ip", "netns", "exec", self.hosts[number], "python3", "-c", code],
                              capture_output=True, text=True, check=False, timeout=HANG_LIMIT_S)

    def cut(self, number):
        ip("-n", self.switch, "link", "set", f"port{number}", "down")

    def join(self, number):
        ip("-n", self.switch, "link", "set", f"port{number}", "up")

    def disturb(self, number, *discipline):
        """What tc says when it cannot, or None. `discipline`: netem or tbf and its words."""
        words = ["tc", "-n", self.hosts[number], "qdisc", "replace", "dev", "eth0", "root"]
        try:
            done = subprocess.run([*words, *discipline], capture_output=True, text=True,
                                  check=False)
        except FileNotFoundError:
            return "the program tc is not installed"
        if done.returncode != 0:
            return f"this kernel has no {discipline[0]}: {done.stderr.strip()}"
        return None
