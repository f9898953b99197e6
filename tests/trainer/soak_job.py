"""A training job under keelrun, as the soaks start it, and what its workers say.

Promises   every wait ends: with an error where the job stands still for longer than HANG_LIMIT, or
           does not end within DYING_LIMIT.
Does not   judge how the job ends: that is for who started it.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HANG_LIMIT = 120
DYING_LIMIT = 900
STEP = re.compile(r"^step (\d+) rank (\d+) of (\d+) pid (\d+) (loss .* lanes .*)$")
# It is nobody's fault if all who had the state were killed, or a GPU was lost (79), or a process
# that loaded samples for a script was killed as it did so.
OWN_FAULT = re.compile(r"worker-died [^\n]* how=\"exited with (?!79)"
                       r"(?![^\n]*no worker that is left)"
                       r"(?![^\n]*was ended by SIGKILL while it loaded)[^\n]*"
                       r"|not-caught-up [^\n]*| error corruption [^\n]*")
CAUGHT_UP = re.compile(r" caught-up ")
RESUMED = re.compile(r"^resumed step=(\d+) ")
# NCCL refuses two ranks on one GPU, unless it takes them for ranks on two hosts.
ON_FIRST_GPU = ["sh", "-c", 'NCCL_HOSTID=host$LOCAL_RANK NCCL_SOCKET_IFNAME=lo exec "$@"', "sh"]


class Job:
    """`with Job(...) as job:` destroys it at the end, after it has shown its log if that failed."""

    def __init__(self, args, workers, options, max_restarts=1000000):
        self.workers = workers
        self.told = 0        # the highest step
        self.caught_up = 0   # so many newcomers did
        self.losses = {}     # of each step, as first told
        self.differing = []  # lines of steps that were told with others
        self.pids = {}       # of each rank, the newest
        self.spoke = set()   # all pids
        self.resumed = None  # the step gone on from
        self.lines = 0
        self.beside = 0      # steps that workers made beside others, each counted by itself
        self.final = []
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)
        program = [args.program] if args.interpreter else ["--no-python", args.program]
        if args.gpu:
            program = ["--no-python", *ON_FIRST_GPU, args.program, "--device=cuda:0"]
        command = [args.keelrun, "--standalone", f"--nproc-per-node={workers}",
                   f"--max-restarts={max_restarts}", *program, *options]
        # Where keelrun starts Python itself there are spares, which die as well.
        python = {"PYTHON_EXEC": args.interpreter} if args.interpreter else {}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=os.environ | python)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            step, resumed = STEP.search(line), RESUMED.search(line)
            if step:
                self.told = max(self.told, int(step[1]))
                self.pids[int(step[2])] = int(step[4])
                self.beside += int(step[3]) > 1
                self.spoke.add(int(step[4]))
                if self.losses.setdefault(int(step[1]), step[5]) != step[5]:
                    self.differing.append(line.strip())
            elif resumed:
                self.resumed = int(resumed[1])
            elif "final step=" in line:
                self.final.append(line[line.index("final step="):].strip())
            self.lines += 1

    def wait_for_launcher(self):
        """Until it has logged something: by then it listens to signals."""
        end = time.monotonic() + HANG_LIMIT
        while os.path.getsize(self.log.name) == 0 and self.process.poll() is None:
            if time.monotonic() > end:
                raise RuntimeError("the launcher says nothing")
            time.sleep(0.001)

    def wait_for_lines(self, count):
        """Until so many more lines came; False when the job has ended."""
        wanted, end = self.lines + count, time.monotonic() + HANG_LIMIT
        while self.lines < wanted:
            if self.process.poll() is not None:
                return False
            if time.monotonic() > end:
                raise RuntimeError("the job stands still")
            time.sleep(0.001)
        return True

    def end(self):
        """Its exit code, once it has ended by itself. Where workers die all the time, it may take
        longer than HANG_LIMIT, while it says something."""
        lines, end = self.lines, time.monotonic() + HANG_LIMIT
        last = time.monotonic() + DYING_LIMIT
        while True:
            try:
                code = self.process.wait(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > last:
                    raise RuntimeError(f"the job goes on and on; it has told {self.told} steps")
                if self.lines != lines:
                    lines, end = self.lines, time.monotonic() + HANG_LIMIT
                elif time.monotonic() > end:
                    raise RuntimeError("the job stands still") from None
        self.reader.join()
        return code

    def finish(self):
        """Its last line and losses; raises where it did not end well."""
        code = self.end()
        lines = sorted(set(self.final))
        if code != 0 or len(lines) != 1:
            raise RuntimeError(f"the job ended with {code} and the last lines {lines}")
        self.compare(self.losses)
        self.caught_up = self.check_log()
        return lines[0], self.losses

    def check_log(self):
        """How often a newcomer caught up; raises where a worker died, or did not catch up, though
        nobody made it."""
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            text = log.read()
        own = OWN_FAULT.search(text)
        if own:
            raise RuntimeError(f"a worker failed by itself: {own[0]}")
        return len(CAUGHT_UP.findall(text))

    def compare(self, losses):
        """Raises where a step was told twice and differently, or otherwise than in `losses`."""
        if self.differing:
            raise RuntimeError(f"steps told with different losses: {self.differing[:5]}")
        for step, text in self.losses.items():
            if text != losses[step]:
                raise RuntimeError(f"step {step}: {text} instead of {losses[step]}")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind is not None and issubclass(kind, Exception):
            self._kill_and_show(error)
        self._destroy()

    def _kill_and_show(self, error):
        self.process.kill()
        sys.stderr.write(f"{error}\n")
        self.log.flush()
        self.log.seek(0)
        sys.stderr.write(self.log.read()[-20000:])

    def _destroy(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.log.close()
        os.unlink(self.log.name)


def quiet(args, options):
    """The last line and the losses of one worker that nobody disturbs."""
    with Job(args, 1, options) as job:
        return job.finish()


def parser(description):
    """The options that all soaks have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--keelrun", required=True, type=os.path.abspath)
    options.add_argument("--program", required=True, type=os.path.abspath)
    options.add_argument("--interpreter", type=os.path.abspath, help="of a program in Python")
    options.add_argument("--models", nargs="+", default=["mlp", "resnet", "gpt"])
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--gpu", action="store_true", help="all workers on the first one")
    options.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    return options


class QuietRuns:
    """What each model's jobs shall end with; each is run once."""

    def __init__(self, args, more=None):
        """`more`: further options, by model."""
        self.args, self.more = args, more or {}
        self.runs = {}

    def options(self, model):
        # With more than four workers some have no lanes.
        return ["--steps", str(self.args.steps), "--lanes", "4", "--model", model,
                *self.more.get(model, [])]

    def expected(self, model):
        if model not in self.runs:
            self.runs[model] = quiet(self.args, self.options(model))
        return self.runs[model]
