#!/usr/bin/env python3
"""What saving, stopping and going on cost the GPT of gpt_bench.cc; one JSON line each.

  save     steps with a background save every 20 of them, and without any, in turns; and for each
           save the 20 steps from it to the next one, with when it was committed
  stop     from SIGTERM to keelrun until it has exited, its checkpoint durable; and as yardsticks,
           right after it, a write and fsync of as many bytes as the state has
  resume   from the command to the first new step, checkpoint not in the page cache; the same under
           torchrun with Python's DDP and DCP (ddp_peer.py), in turns
  loader   how much of a step is waiting for data

Promises   what is compared takes turns. Every worker has one thread.
Does not   retry: a job that fails ends the measurement.
"""
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from common import SIZES, WIDTHS_AND_LAYERS, keelrun, keep_byte_code, parser, put

HERE = os.path.dirname(os.path.abspath(__file__))
STATE_BYTES_A_PARAMETER = 12   # itself and AdamW's two moments
SAVE_EVERY = 20
WINDOWS = 6       # saves of a job whose steps up to the next one are measured
WARM_UP = 5
STOPPED = 75
PIECE = 8 << 20
ARGS = None


class Job:
    """A job of two workers in `folder`, which tells its steps in a file."""

    def __init__(self, folder, program, *options):
        self.log = f"{folder}/log-{time.monotonic_ns()}.jsonl"
        self.started_ns = time.time_ns()
        self.process = subprocess.Popen(
            keelrun(ARGS.bin, 2, "--no-python", f"{ARGS.bin}/{program}", "--log-every=1",
                    f"--log-jsonl={self.log}", *options), stdout=subprocess.DEVNULL)

    def entries(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            lines = [line for line in file if line.endswith("\n")]
        return [one for one in map(json.loads, lines) if one["event"] == "step"]

    def await_step(self, step):
        while not any(one["step"] >= step for one in self.entries()):
            if self.process.poll() is not None:
                sys.exit(f"the job ended with {self.process.returncode} before step {step}")
            time.sleep(0.005)

    def finish(self, code=0):
        if self.process.wait() != code:
            sys.exit(f"the job ended with {self.process.returncode}, not {code}")
        return self.entries()


def seconds_between(entries):
    walls = [one["wall_ns"] for one in entries]
    return [(after - before) / 1e9 for before, after in zip(walls, walls[1:])]


def gpt(folder, *options):
    return Job(folder, "gpt_bench", *SIZES[ARGS.size], *options)


def commits(checkpoints):
    """When each step's checkpoint was committed."""
    return {json.load(open(path, encoding="utf-8"))["step"]: os.stat(path).st_mtime_ns
            for path in glob.glob(f"{checkpoints}/*/manifest.json")}


def windows(entries, committed_ns):
    """The steps from a save to the next one: how long each took, and which were begun after the
    save was committed (without saves: the second half)."""
    walls = {one["step"]: one["wall_ns"] for one in entries}
    for save_step in range(SAVE_EVERY, max(walls) - SAVE_EVERY + 1, SAVE_EVERY):
        times = [walls[save_step + i] for i in range(SAVE_EVERY + 1)]
        quiet_from = committed_ns.get(save_step, times[SAVE_EVERY // 2])
        yield {"seconds": [(after - before) / 1e9 for before, after in zip(times, times[1:])],
               "quiet": [begin >= quiet_from for begin in times[:-1]]}


def save(folder):
    for turn in range(ARGS.rounds):
        for saving in (False, True) if turn % 2 == 0 else (True, False):
            os.sync()
            checkpoints = f"{folder}/checkpoints"
            options = ["--checkpoint-dir", checkpoints, "--save-every", str(SAVE_EVERY),
                       "--keep", str(WINDOWS + 1)]
            job = gpt(folder, "--steps", str((WINDOWS + 1) * SAVE_EVERY),
                      *(options if saving else []))
            entries = job.finish()
            steps = seconds_between(entries)[WARM_UP:]
            put(what="save", round=turn, saving=saving, seconds=statistics.mean(steps),
                median=statistics.median(steps), worst=max(steps))
            for window in windows(entries, commits(checkpoints)):
                put(what="window", round=turn, saving=saving, **window)
            shutil.rmtree(checkpoints, ignore_errors=True)


def write_and_sync(path, size):
    piece = os.urandom(PIECE)
    start = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(size // PIECE):
            file.write(piece)
        os.fsync(file.fileno())
    took = time.monotonic() - start
    os.remove(path)
    return took


def parameters():
    width, layers = WIDTHS_AND_LAYERS[ARGS.size]
    return 12 * layers * width * width


def stop(folder):
    for turn in range(ARGS.rounds):
        checkpoints = f"{folder}/checkpoints"
        job = gpt(folder, "--steps=100000", "--checkpoint-dir", checkpoints)
        job.await_step(8 + turn % 3)
        time.sleep(0.05 * turn)
        os.sync()
        start = time.monotonic()
        job.process.send_signal(signal.SIGTERM)
        entries = job.finish(STOPPED)
        took = time.monotonic() - start
        shutil.rmtree(checkpoints)
        os.sync()
        size = parameters() * STATE_BYTES_A_PARAMETER
        put(what="stop", round=turn, seconds=took, state_bytes=size,
            step=statistics.median(seconds_between(entries)),
            write=write_and_sync(f"{folder}/yardstick", size))


def evict(folder):
    os.sync()
    for root, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ours(folder, steps, first):
    job = gpt(folder, "--steps", str(steps), "--checkpoint-dir", f"{folder}/ours")
    entry = job.finish()[0]
    if entry["step"] != first:
        sys.exit(f"it went on with step {entry['step']}, not {first}")
    return (entry["wall_ns"] - job.started_ns) / 1e9


def peers(folder, steps, first):
    start = time.time_ns()
    done = subprocess.run(
        [ARGS.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
         f"{HERE}/ddp_peer.py", *SIZES[ARGS.size], "--steps", str(steps), "--fused",
         "--checkpoint", f"{folder}/dcp"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"})
    told = next(line for line in done.stdout.splitlines() if line.startswith(f"step {first} at "))
    return (int(told.split()[-1]) - start) / 1e9


def resume(folder):
    ours(folder, 3, 1)
    peers(folder, 3, 1)
    for turn in range(ARGS.rounds):
        for system, start in (("keelrun", ours), ("torchrun, DDP, DCP", peers)):
            evict(folder)
            put(what="resume", round=turn, system=system,
                seconds=start(folder, 4 + turn, 4 + turn))


def loader(folder):
    for name, program, options in (("GPT", "gpt_bench", SIZES["6M"]),
                                   ("ResNet", "model_train", ["--model=resnet"])):
        entries = Job(folder, program, "--steps=60", *options).finish()[WARM_UP:]
        waited = sum(one["ms"]["data"] for one in entries) / 1e3
        put(what="loader", model=name, seconds=waited, of=sum(seconds_between(entries)))


SCENARIOS = {"save": save, "stop": stop, "resume": resume, "loader": loader}


def main():
    global ARGS
    options = parser(__doc__, SCENARIOS)
    options.add_argument("--size", choices=list(SIZES), default="40M")
    options.add_argument("--tmp", help="a directory on the disk to measure (default: the system's)")
    ARGS = options.parse_args()
    keep_byte_code()
    for name in ARGS.scenario or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="keel-stops-", dir=ARGS.tmp) as folder:
            SCENARIOS[name](folder)


if __name__ == "__main__":
    sys.exit(main())
