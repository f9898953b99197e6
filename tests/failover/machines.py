"""Machines of a job whose coordinator goes: launchers at loopback addresses of their own.

Promises   each launcher has its machine's address and the endpoint's port there, so that any of
           them can be the one that is asked. Leaving Job kills whoever is left, and fails where
           somebody outlived the launchers. Every wait has a limit and tells what everyone printed.
Does not   take a machine's network away: that needs namespaces (tests/net/hosts.py).
"""
import collections
import os
import re
import signal
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "../net"), os.path.join(HERE, "../harness")]
import hosts  # noqa: E402  tests/net/hosts.py
import marked  # noqa: E402
from free_port import free_port  # noqa: E402

HANG_LIMIT_S = 90
MOST = 40   # addresses that the list of endpoints names
CONF = "last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3"
STEP = re.compile(r" step step=(\d+) .*\bloss=(\S+) .*\bworkers=(\d+)")
# Not one that a new board only takes up from the one before.
EPOCH = r" epoch epoch=(\d+) workers={} hosts=\d+ reason=\"(?!epoch \d+ goes on)"
FORMED = re.compile(r" epoch-formed epoch=(\d+) ")
OPENED = re.compile(r" board-opened term=(\d+) ")


class Machine(hosts.Launcher):
    """A launcher at 127.0.0.`number`, and whatever it has started."""

    def __init__(self, number, command, environment, folder, mark):
        self.number, self.mark_of_all = number, mark
        self.steps = []   # (time of arrival, number, loss as text)
        super().__init__(f"host{number}", command, {**environment, mark[0]: mark[1]}, folder)

    def read(self):
        for line in self.process.stdout:
            found = STEP.search(line)
            with self.changed:
                if found:
                    self.steps.append((time.monotonic(), int(found[1]), found[2]))
                self.lines.append(line.rstrip())
                self.changed.notify_all()

    def send(self, what):
        self.process.send_signal(what)

    def kill(self):
        """The machine is gone: the launcher and all of its workers."""
        super().kill()
        marked.kill_marked(*self.mark_of_all)

    def is_alive(self):
        return self.process.poll() is None

    def terms(self):
        """Of the boards that it has kept."""
        found = [int(one[1]) for one in map(OPENED.search, self.lines) if one]
        began = any(" hosted_here=true " in line for line in self.lines[:3])
        return [1, *found] if began else found


class Job:
    """`command`: of the workers. `nnodes`: as for the launcher. `directory`: its hosts meet in
    one, and know no endpoint. `port`: of the endpoint, which another job may have."""

    def __init__(self, keelrun, command, nnodes="2:3", options=("--max-restarts=20",),
                 directory=False, name="failover", port=None):
        self.name = name
        self.keelrun, self.command = keelrun, command
        self.nnodes, self.options = nnodes, options
        self.temporary = tempfile.TemporaryDirectory(prefix="keel-failover-")
        self.folder = self.temporary.name
        self.done_file = os.path.join(self.folder, "done")
        self.port = port or free_port()
        self.directory = os.path.join(self.folder, "meeting") if directory else None
        if directory:
            os.mkdir(self.directory)
        self.run = uuid.uuid4().hex
        self.mark = ("KEEL_FAILOVER_RUN", self.run)
        self.started = []    # all machines that there ever were
        self.machines = {}   # those that there are now, by number

    def __enter__(self):
        return self

    def __exit__(self, kind=None, *_):
        for machine in self.started:
            if kind is not None and machine.is_alive():
                machine.send(signal.SIGCONT)
        left = marked.await_none_marked(*self.mark, HANG_LIMIT_S) if kind is None else {}
        marked.kill_marked(*self.mark)
        for machine in self.started:
            machine.process.wait()
            machine.reader.join(5)
            machine.process.stdout.close()
        if kind is not None:
            sys.stderr.write(self.text() + "\n")
        self.temporary.cleanup()
        if left:
            raise AssertionError(f"these outlived their launchers: {left}")

    def endpoints(self):
        return ",".join([f"127.0.0.1:{self.port}", *(f"127.0.0.{n}" for n in range(2, MOST))])

    def meeting(self, endpoints):
        if self.directory:
            return ["--rdzv-backend=dir", f"--rdzv-endpoint={self.directory}"]
        return ["--rdzv-backend=c10d", f"--rdzv-endpoint={endpoints or self.endpoints()}"]

    def start(self, number, command=None, endpoints=None, conf=CONF):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_"))}
        clean |= {"TMPDIR": self.folder, "OMP_NUM_THREADS": "1", self.mark[0]: self.mark[1]}
        words = [self.keelrun, f"--nnodes={self.nnodes}", "--nproc-per-node=1",
                 *self.meeting(endpoints), f"--rdzv-id={self.name}", f"--rdzv-conf={conf}",
                 f"--local-addr=127.0.0.{number}", *self.options, "--no-python"]
        machine = Machine(number, [*words, *(command or self.command)], clean, self.folder,
                          ("KEEL_FAILOVER_HOST", f"{self.run}.{len(self.started)}"))
        self.started.append(machine)
        self.machines[number] = machine
        return machine

    def start_all(self, count=3):
        for number in range(1, count + 1):
            self.start(number)
        self.whole(count)

    def marks(self):
        return {number: machine.mark() for number, machine in self.machines.items()}

    def whole(self, world, since=None):
        """Until each machine has told of an epoch with so many workers, in its turn."""
        for number, machine in list(self.machines.items()):
            machine.wait_for(EPOCH.format(world), (since or {}).get(number, 0))

    def coordinator(self):
        """The machine that keeps the newest board."""
        if self.directory:   # several may have opened the first one, and one has the lease
            return max(self.machines.values(), key=lambda machine: max(
                (line for line in machine.lines if " lease-claimed " in line), default=""))
        return max(self.machines.values(), key=lambda machine: max(machine.terms(), default=0))

    def drop(self, machine):
        """It is no machine of the job's any more."""
        del self.machines[machine.number]
        return machine

    def text(self):
        return "\n".join(f"{machine.name}| {line[:300]}" for machine in self.started
                         for line in machine.lines if not STEP.search(line))

    def lines(self, pattern):
        return [line for machine in self.started for line in machine.lines
                if re.search(pattern, line)]

    # --- Ends ---

    def finish(self, **limits):
        """The exit codes, by number, of workers that wait for the file that says to end."""
        with open(self.done_file, "w", encoding="utf-8"):
            pass
        return self.ends(**limits)

    def ends(self, **limits):
        return {number: machine.end(**limits) for number, machine in self.machines.items()}

    def stop(self):
        for machine in self.machines.values():
            machine.send(signal.SIGTERM)
        return self.ends()

    # --- Facts that hold in every job ---

    def epochs_formed(self):
        """{number: how often an epoch of that number was formed}, by whomever."""
        return collections.Counter(int(found[1]) for machine in self.started
                                   for found in map(FORMED.search, machine.lines) if found)

    def steps(self):
        """{step: [loss as text, ...]} of all that was told of it."""
        told = collections.defaultdict(list)
        for machine in self.started:
            for _, step, loss in machine.steps:
                told[step].append(loss)
        return told

    def last_step(self):
        return max((machine.steps[-1][1] for machine in self.started if machine.steps), default=0)

    def go_on(self, more=20, limit_s=HANG_LIMIT_S):
        """Until so many more steps were made."""
        wanted, end = self.last_step() + more, time.monotonic() + limit_s
        while self.last_step() < wanted:
            if time.monotonic() > end:
                raise AssertionError(f"no step {wanted} in {limit_s} s\n{self.text()}")
            time.sleep(0.05)
        return self.last_step()
