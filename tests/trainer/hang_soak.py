#!/usr/bin/env python3
"""Lets one worker of each of many training jobs stand still, and looks who pays for it.

Promises   in each job one worker is stopped (SIGSTOP) or stands in its own code at a drawn moment:
           while workers meet, move or resume the state, in a lane, forward, backward or a bucket,
           while they vote, apply, evaluate or save. A job fails where anybody else is killed, where
           more than one restart is spent, where a step is lost, where it ends with another line
           than a quiet run, or where it never ends.
Does not   care for the drawn worker's being struck: a job that ends before counts as such.
"""
import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import kill_soak
import soak_job

# Where it strikes, and what the job needs for that to come.
STOPS = ["at meeting*", "at*moving*", "at*resuming*", "at*computing*", "at*voting*", "at*applying*",
         "at*evaluating*", "at*saving*", "read", "read", "forward", "backward", "data", "metric",
         "on_step", "anywhere", "anywhere"]
STANDS = ["forward", "backward", "data", "metric", "on_step"]
ENDED = re.compile(r"worker-(?:ended|died) .*?pid=(\d+) how=\"([^\"]*)\"")
STEP = re.compile(r"^(?:\[[^\]]*\]:)?step (\d+) rank (\d+) of (\d+) pid (\d+) ")
RIGGED = re.compile(r"^rigged (\w+) at (.*) pid (\d+)$")


class Round:
    def __init__(self, args, number):
        self.args = args
        self.rng = random.Random(args.seed * 100003 + number)
        self.folder = tempfile.mkdtemp(prefix="keel-hang-")
        self.workers = self.rng.randrange(2, 6)
        self.hosts = 2 if self.workers % 2 == 0 and self.rng.random() < 0.4 else 1
        self.how = self.rng.choice(["stop", "stop", "stand"])
        self.moment = self.rng.choice(STOPS if self.how == "stop" else STANDS)
        self.rank = self.rng.randrange(self.workers // self.hosts)
        self.nth = 1 if self.rng.random() < 0.3 else self.rng.randrange(1, 30)
        if self.moment in ("at meeting*", "at*moving*", "at*resuming*", "at*saving*", "metric"):
            self.nth = 1
        self.model = self.rng.choice(args.models)
        self.text = (f"{number}: {self.how} at {self.moment!r} {self.nth}, rank {self.rank} of "
                     f"{self.workers} on {self.hosts} host(s), {self.model}")
        self.launchers = []

    def options(self):
        options = ["--steps", str(self.args.steps), "--lanes", "4", "--model", self.model,
                   "--checkpoint-dir", os.path.join(self.folder, "ckpt"), "--save-every", "20",
                   "--evaluate-every", "15"]
        if self.moment == "read" or self.rng.random() < 0.5:
            options.append("--read-memory-from=1")
        if self.moment == "anywhere":
            options += ["--lane-time", "2ms"]
        return options

    def launch(self, host, options, port):
        launch = [self.args.keelrun, "--max-restarts=10", f"--hang-limit={self.args.limit}s"]
        if self.hosts == 1:
            launch += ["--standalone", f"--nproc-per-node={self.workers}"]
        else:
            launch += [f"--nnodes={self.hosts}", f"--nproc-per-node={self.workers // self.hosts}",
                       "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}",
                       "--rdzv-id=soak"]
        rule = os.path.join(self.folder, "rule")
        log = open(os.path.join(self.folder, f"log{host}"), "wb")
        out = open(os.path.join(self.folder, f"out{host}"), "wb")
        return subprocess.Popen([*launch, "--no-python", self.args.program, *options], stdout=out,
                                stderr=log, env={**os.environ, "KEEL_RIGGED_STOP": rule})

    def read(self, name):
        text = ""
        for host in range(self.hosts):
            path = os.path.join(self.folder, f"{name}{host}")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
        return text

    def arm(self):
        path = os.path.join(self.folder, "rule")
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(f"{self.rank} {self.moment.replace(' ', '?')} {self.nth} {self.how}\n")
        os.rename(path + ".new", path)

    def wait_for(self, condition, what):
        end = time.monotonic() + soak_job.HANG_LIMIT
        while not condition():
            if all(one.poll() is not None for one in self.launchers):
                return False
            if time.monotonic() > end:
                raise RuntimeError(f"the job stands still before {what}")
            time.sleep(0.01)
        return True

    def workers_of(self):
        found, parents = [], [one.pid for one in self.launchers]
        while parents:
            children = kill_soak.children_of(parents.pop())
            parents += children
            found += [pid for pid in children if kill_soak.is_worker(pid)]
        return found

    def strike(self):
        """The pid that was struck, and who was killed before; None: the job was faster."""
        killed = []
        if self.moment == "at*moving*":
            # A replacement takes the state from the others.
            if not self.wait_for(lambda: "step 3 " in self.read("out"), "step 3"):
                return None, killed
            pid = self.rng.choice(self.workers_of())
            self.arm()
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        elif self.moment == "anywhere":
            wanted = self.rng.randrange(0, self.args.steps // 2)
            self.wait_for(lambda: self.read("out").count("\nstep ") > wanted, f"line {wanted}")
            time.sleep(self.rng.uniform(0, 0.05))
            pids = self.workers_of()
            if not pids:
                return None, killed
            pid = self.rng.choice(pids)
            os.kill(pid, signal.SIGSTOP)
            return pid, killed
        struck = []

        def is_struck():
            struck[:] = [int(found[3]) for line in self.read("out").splitlines()
                         if (found := RIGGED.match(line))]
            return struck
        if not self.wait_for(is_struck, "it strikes"):
            return None, killed
        return struck[0], killed

    def run(self, expected):
        options = self.options()
        port = free_port()
        if self.moment == "at*resuming*":   # a first job leaves a checkpoint
            self.launchers = [self.launch(host, options, port) for host in range(self.hosts)]
            self.wait_for(lambda: "step 25 " in self.read("out"), "step 25")
            for one in self.launchers:
                one.send_signal(signal.SIGTERM)
            for one in self.launchers:
                one.wait(soak_job.HANG_LIMIT)
            port = free_port()
        if self.moment not in ("at*moving*", "anywhere"):
            self.arm()
        self.launchers = [self.launch(host, options, port) for host in range(self.hosts)]
        struck, killed = self.strike()
        for one in self.launchers:
            if one.wait(soak_job.HANG_LIMIT) != 0:
                raise RuntimeError(f"exit code {one.returncode}")
        self.check(struck, killed, expected)
        return struck is not None

    def check(self, struck, killed, expected):
        log, out = self.read("log"), self.read("out")
        final = {line[line.index("final step="):] for line in out.splitlines()
                 if "final step=" in line}
        if final != {expected}:
            raise RuntimeError(f"ended with {final} instead of {expected}")
        died = sorted(int(pid) for pid, how in ENDED.findall(log) if "signal 9" in how)
        allowed = sorted(killed + ([struck] if struck else []))
        if struck in killed:
            allowed = killed
        if died != allowed:
            raise RuntimeError(f"{died} were killed, only {allowed} should be")
        seen = {}
        for line in out.splitlines():
            if found := STEP.match(line):
                step, pid = int(found[1]), int(found[4])
                if seen.get(pid, step - 1) != step - 1:
                    raise RuntimeError(f"pid {pid} went from step {seen[pid]} to {step}")
                seen[pid] = step

    def destroy(self, failed):
        for pid in self.workers_of():
            kill_soak.kill(pid, False, 0)
        for one in self.launchers:
            if one.poll() is None:
                one.kill()
                one.wait()
        if failed:
            sys.stderr.write(self.read("log")[-6000:] + "\nkept: " + self.folder + "\n")
        else:
            shutil.rmtree(self.folder)


def free_port():
    import socket
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def play(args, number, quiet):
    this = Round(args, number)
    failed = True
    begun = time.monotonic()
    try:
        struck = this.run(quiet[this.model])
        failed = False
        print(f"{this.text}: {'the same line' if struck else 'ended before'}, "
              f"{time.monotonic() - begun:.1f} s", flush=True)
        return struck
    except Exception as error:
        print(f"{this.text}: FAILED: {error}", flush=True)
        raise
    finally:
        this.destroy(failed)


def main():
    parser = soak_job.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--limit", type=int, default=4, help="--hang-limit in seconds")
    parser.add_argument("--at-once", type=int, default=1, help="jobs")
    parser.set_defaults(steps=60)
    args = parser.parse_args()
    args.name = os.path.basename(args.program)
    kill_soak.ARGS = args
    print(f"seed {args.seed}", flush=True)
    quiet = {model: soak_job.QuietRuns(args).expected(model)[0] for model in args.models}
    struck = failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for done in [pool.submit(play, args, args.first + i, quiet) for i in range(args.rounds)]:
            try:
                struck += done.result()
            except Exception:
                failed += 1
    print(f"{struck} of {args.rounds} jobs were struck, {failed} failed", flush=True)
    return 1 if failed or not struck else 0


if __name__ == "__main__":
    sys.exit(main())
