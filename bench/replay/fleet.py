"""Hosts that come and go as a plan says, as processes: each a launcher with one worker.

Promises   a host that vanishes is killed whole: its launcher's process group and all that descends
           from it. One that is told so gets SIGTERM, and is killed when its time is over. One whose
           launcher ends by itself, since the job stopped, is started again, as an instance that
           still runs would do. What a system needs beside its hosts runs all the time, on no
           host. Nothing that was started is left at the end. A job that tells no step for the
           hang limit, or ends with a code that no stop explains, is a failure with its logs.
Does not   show a machine that falls silent: the kernel closes a dead process's connections at once.
"""
import collections
import glob
import heapq
import os
import re
import selectors
import signal
import subprocess
import sys
import time

import account

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/harness"))
from marked import await_none_marked, kill  # noqa: E402

STEP = re.compile(r"^step (\d+) rank (\d+) of (\d+) pid (\d+)(?: (loss .* lanes .*))?$")
EPOCH = re.compile(r"^\S+ info epoch epoch=\d+ |^quorum \d+$")   # keelrun's, torchft's
RESUMED = re.compile(r"^resumed step=(\d+)")
RECEIVING = re.compile(r"^\S+ info (catching-up|state-complete) ")
AGAIN_S = 0.5          # before a launcher is started anew that ended soon after its start
SOON_S = 1.0
TAIL = 25


class Failed(Exception):
    """Why the replay cannot count, in words."""


def descendants(pid):
    found, parents = [], [pid]
    while parents:
        for path in glob.glob(f"/proc/{parents.pop()}/task/*/children"):
            try:
                with open(path, encoding="ascii") as file:
                    children = [int(word) for word in file.read().split()]
            except OSError:
                continue   # it has ended
            found += children
            parents += children
    return found


def send(pid, number, group=False):
    if pid <= 1:
        raise ValueError(f"{pid} is no process of a replay")
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass


def tail(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(f"  {os.path.basename(path)}| {line}"
                           for line in collections.deque(file, TAIL))
    except OSError:
        return ""


class Host:
    """What sits in a seat for a while: a launcher, and its successors if it ends by itself."""

    def __init__(self, tenure, folder, number):
        self.tenure, self.log = tenure, account.HostLog(tenure)
        self.path = os.path.join(folder, f"host{number:03}-seat{tenure.seat}.log")
        self.process, self.rest, self.started = None, b"", 0.0
        self.told_so = self.over = False
        self.pids = set()      # of workers that told a step

    def launch(self, command, environment, folder, now):
        self.process = subprocess.Popen(command, cwd=folder, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest, self.started = b"", now

    def read(self):
        """What it printed since, as whole lines; None once it has closed its output."""
        try:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return []
        with open(self.path, "ab") as file:
            file.write(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines] if data else None

    def vanish(self):
        """The whole machine, at once."""
        if self.process and self.process.poll() is None:
            pids = descendants(self.process.pid)
            send(self.process.pid, signal.SIGKILL, group=True)
            for pid in pids:
                send(pid, signal.SIGKILL)
            self.process.wait()

    def tail(self):
        return tail(self.path)


class Fleet:
    """`system`: one of systems.py."""

    def __init__(self, plan, system, folder, hang_limit, progress):
        self.plan, self.system, self.folder = plan, system, folder
        self.hang_limit, self.progress = hang_limit, progress
        self.mark = f"KEEL_REPLAY_{os.getpid()}_{time.monotonic_ns()}"
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_"))}
        self.environment = {**clean, "OMP_NUM_THREADS": "1", "TMPDIR": folder, self.mark: "1",
                            **system.environment}
        self.selector = selectors.DefaultSelector()
        self.hosts, self.agenda, self.order = [], [], 0
        self.helper, self.helper_log = None, os.path.join(folder, "helper.log")
        self.happened, self.codes = collections.Counter(), collections.Counter()
        self.started_again = []   # when, which seat, after which code, beside how many others
        self.losses, self.differing = {}, []
        self.high, self.last_step, self.ending = 0, 0.0, False
        self.start = time.monotonic()

    def now(self):
        return time.monotonic() - self.start

    def at(self, when, what, *arguments):
        self.order += 1
        heapq.heappush(self.agenda, (when, self.order, what, arguments))

    def alive(self):
        return [host for host in self.hosts if host.process and host.process.poll() is None]

    # --- What happens to hosts ---

    def start_helper(self):
        """What the hosts need on a machine that nobody takes away."""
        if not self.system.helper:
            return
        with open(self.helper_log, "wb") as log:
            self.helper = subprocess.Popen(self.system.helper, cwd=self.folder, stdout=log,
                                           env=self.environment, stdin=subprocess.DEVNULL,
                                           stderr=subprocess.STDOUT, start_new_session=True)

    def come(self, tenure):
        host = Host(tenure, self.folder, len(self.hosts))
        self.hosts.append(host)
        self.happened["came" if tenure.is_spot else "store host came"] += 1
        self.launch(host)
        if tenure.notice is not None:
            self.at(tenure.notice, self.tell, host)
        if tenure.goes:
            self.at(tenure.gone, self.take_away, host)

    def launch(self, host):
        if host.told_so or host.over or self.ending:
            return
        host.launch(self.system.command(host.tenure), self.environment, self.folder, self.now())
        self.selector.register(host.process.stdout, selectors.EVENT_READ, host)

    def tell(self, host):
        host.told_so = True
        self.happened["went with notice"] += 1
        if host.process.poll() is None:
            send(host.process.pid, signal.SIGTERM)

    def take_away(self, host):
        running = host.process.poll() is None
        if not host.told_so:
            self.happened["went without notice"] += 1
            host.log.killed = self.now() if running else None
        elif running:
            self.happened["overran its notice"] += 1
        host.over = True
        host.vanish()

    def ended(self, host):
        """Its launcher did, or was killed."""
        code = host.process.wait()
        if host.over:
            return
        self.codes[str(code)] += 1
        if not self.system.may_end(code, host.told_so or self.ending):
            raise Failed(f"the launcher in seat {host.tenure.seat} ended with {code}")
        if not host.told_so and not self.ending:
            self.happened["started again"] += 1
            self.started_again.append({
                "at": round(self.now(), 3), "seat": host.tenure.seat, "code": code,
                "beside": sum(not other.told_so for other in self.alive() if other is not host)})
            soon = self.now() - host.started < SOON_S
            self.at(self.now() + (AGAIN_S if soon else 0), self.launch, host)

    # --- What they say ---

    def hear(self, host, line, now):
        if step := STEP.match(line):
            number, pid = int(step[1]), int(step[4])
            if pid not in host.pids and not self.system.tells_epochs:
                host.log.epochs.append(now - 1e-6)   # all begin anew in each
            host.pids.add(pid)
            host.log.told.append(account.Told(now, number, int(step[3]), pid))
            self.high, self.last_step = max(self.high, number), now
            if step[5] and self.losses.setdefault(number, step[5]) != step[5]:
                self.differing.append(line)
        elif EPOCH.match(line):
            host.log.epochs.append(now)
        elif receiving := RECEIVING.match(line):
            host.log.receiving.append((now, receiving[1] == "catching-up"))
        elif resumed := RESUMED.match(line):
            host.log.resumed.append((now, int(resumed[1])))
            host.log.receiving.append((now, False))   # it was in the middle of that

    def listen(self, seconds):
        for key, _ in self.selector.select(max(seconds, 0)):
            host, now = key.data, self.now()
            lines = host.read()
            for line in lines or []:
                self.hear(host, line, now)
            if lines is None:
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                self.ended(host)

    # --- The whole ---

    def run(self):
        self.start_helper()
        for tenure in self.plan.tenures:
            self.at(tenure.come, self.come, tenure)
        told = 0.0
        while self.now() < self.plan.seconds:
            now = self.now()
            while self.agenda and self.agenda[0][0] <= now:
                _, _, what, arguments = heapq.heappop(self.agenda)
                what(*arguments)
            soon = min(self.agenda[0][0] if self.agenda else now + 1, self.plan.seconds)
            self.listen(min(soon - self.now(), 0.5))
            self.check_moves()
            if now >= told:
                told = now + self.progress.every
                self.progress.say(self)

    def check_moves(self):
        """Whoever could have made a step has had the time to. A peer's hang is a result."""
        if self.helper and self.helper.poll() is not None:
            raise Failed(f"{self.system.helper[0]} ended with {self.helper.returncode}")
        begun = min((host.started for host in self.alive()), default=self.now())
        since = max(self.last_step, begun)
        if self.now() - since > self.hang_limit and self.system.ours:
            raise Failed(f"no step for {self.hang_limit:g} s, after step {self.high}")

    def stop(self):
        """SIGTERM to all; they save and end."""
        self.ending, begun = True, self.now()
        for host in self.alive():
            send(host.process.pid, signal.SIGTERM)
        while self.selector.get_map():
            if self.now() - begun > self.hang_limit:
                if not self.system.ours:
                    break
                raise Failed(f"the stop takes more than {self.hang_limit:g} s")
            self.listen(0.5)

    def tails(self):
        return "".join([tail(self.helper_log)] +
                       [host.tail() for host in self.alive() or self.hosts[-2:]])

    def last_words(self):
        """The last line of the first host that said anything."""
        return next((host.tail().splitlines()[-1].strip() for host in self.hosts if host.tail()),
                    "")

    def destroy(self):
        """Whoever outlived his launcher, by process number."""
        for host in self.hosts:
            host.vanish()
        if self.helper:
            self.helper.kill()
            self.helper.wait()
        left = await_none_marked(self.mark, "1", 10)
        for pid in left:
            kill(pid)
        return left
