"""How each launcher is started on a host of a replay, and how its jobs end.

Promises   each as its users would for hosts that come and go: --nnodes=1:N, one second of last
           call, a checkpoint directory that all share. All addresses are of this machine; under
           our launcher each host has one of its own. Whether a system can run here at all is found
           out before anything is started.
"""
import glob
import ipaddress
import os
import re
import subprocess
import sys

import fleet

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/harness"))
from free_port import free_port  # noqa: E402
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../trainer"))
import cases  # noqa: E402  bench/trainer/cases.py: the peers as tuned there
from common import keep_byte_code  # noqa: E402,F401  bench/trainer/common.py


STEP_DIR = re.compile(r"step-0*(\d+)$")
FOR_EVER = 10 ** 9
SMALL = ["--hidden", "32", "32"]    # the peers' net is as small as model_train's: they sleep, too
TORCHFT_TIMEOUT_S = 1       # of Gloo's operations: one that waits for a lost peer
HERE = os.path.dirname(os.path.abspath(__file__))
PROBE_LIMIT_S = 300


def address(seat):
    """A host's own, on loopback."""
    return str(ipaddress.ip_address("127.0.0.1") + seat)


def cannot_import(python, module):
    """Why not, or None."""
    try:
        done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True,
                              errors="replace", timeout=PROBE_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return f"{python} cannot import {module}: {said[-1]}"


class Keelrun:
    """Evenkeel's launcher and trainer: workers survive in place."""
    tells_epochs, exact, ours = True, True, True
    helper = None       # what runs beside the hosts
    pythons = ()        # the option with the interpreter, the module that it must have
    stores = ("stable", "spot", "directory")

    def __init__(self, args, folder):
        self.args, self.meeting = args, os.path.join(folder, "meeting")
        self.port = free_port()
        self.environment = {}
        self.checkpoints = os.path.join(folder, "checkpoints")

    def launcher(self, tenure):
        conf = "last_call_timeout=1"
        if self.args.store == "stable":
            conf += f",is_host={int(not tenure.is_spot)}"
        others = [address(seat) for seat in range(1, self.args.max_hosts)]
        meeting = "c10d", ",".join([f"{address(0)}:{self.port}", *others])
        if self.args.store == "directory":
            os.makedirs(self.meeting, exist_ok=True)
            meeting = "dir", self.meeting
        return [f"{self.args.bin}/keelrun", f"--nnodes=1:{self.args.max_hosts}",
                "--nproc-per-node=1", f"--rdzv-backend={meeting[0]}", "--rdzv-id=replay",
                f"--rdzv-endpoint={meeting[1]}", f"--rdzv-conf={conf}",
                f"--local-addr={address(tenure.seat)}",
                "--max-restarts=1000000", "--notice=none",
                f"--store-limit={self.args.store_limit}s"]

    def command(self, tenure):
        return [*self.launcher(tenure), "--no-python", *self.program(
            FOR_EVER, self.args.lane_time), f"--checkpoint-dir={self.checkpoints}",
            f"--save-every={self.args.save_every}"]

    def program(self, steps, lane_ms):
        return [f"{self.args.bin}/model_train", f"--steps={steps}", f"--lanes={self.args.lanes}",
                f"--lane-time={lane_ms}ms", "--log-every=0"]

    @staticmethod
    def may_end(code, was_told):
        """75 and 77: the job stopped; 76: too few were left, or the store for too long. A signal
        may come before the launcher listens."""
        return code in (75, 76, 77) or (was_told and code == -15)

    def saved(self):
        """The newest checkpoint's step; None: there is none."""
        found = [int(STEP_DIR.search(os.path.dirname(path))[1])
                 for path in glob.glob(f"{self.checkpoints}/step-*/manifest.json")]
        return max(found, default=None)

    def last_line(self, command):
        """The job's last line, and {step: its losses}."""
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
        steps = (fleet.STEP.match(line) for line in done.stdout.splitlines())
        losses = {int(step[1]): step[5] for step in steps if step}
        last = re.findall(r"^final step=.*", done.stdout, re.M)
        if done.returncode != 0 or not last:
            raise fleet.Failed(f"{' '.join(command)} ended with {done.returncode}\n"
                               f"{done.stderr[-3000:]}")
        return last[-1], losses

    def finish(self, steps):
        """The replayed job, gone on with to its end."""
        return self.last_line([f"{self.args.bin}/keelrun", "--standalone", "--no-python",
                               *self.program(steps, 0), f"--checkpoint-dir={self.checkpoints}"])

    def quiet(self, steps):
        return self.last_line(self.program(steps, 0))


class Torchrun:
    """PyTorch's launcher, with short limits, and a DDP script that saves."""
    tells_epochs, exact, ours = False, False, False
    helper, pythons, stores = None, ("python", "torch"), ("stable", "spot")

    def __init__(self, args, folder):
        self.args, self.port = args, free_port()
        self.checkpoint = os.path.join(folder, "checkpoint.pt")
        # Without the first half of its restarts hang.
        self.environment = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "GLOO_SOCKET_IFNAME": "lo"}

    def launcher(self, tenure):
        conf = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"
        if self.args.store == "stable":
            conf += f",is_host={int(not tenure.is_spot)}"
        return [self.args.python, "-m", "torch.distributed.run",
                f"--nnodes=1:{self.args.max_hosts}", "--nproc-per-node=1", "--rdzv-backend=c10d",
                "--rdzv-id=replay", f"--rdzv-endpoint=127.0.0.1:{self.port}", f"--rdzv-conf={conf}",
                "--max-restarts=1000"]

    def command(self, tenure):
        return [*self.launcher(tenure), f"{HERE}/../trainer/peers/torchrun_job.py",
                f"--checkpoint={self.checkpoint}", f"--lanes={self.args.lanes}",
                f"--step-ms={self.args.lane_time}", *SMALL]

    @staticmethod
    def may_end(code, was_told):
        return True   # its codes tell nothing


class KeelrunDdp(Torchrun):
    """The same DDP script, unchanged, under keelrun."""
    ours, stores = True, Keelrun.stores

    def __init__(self, args, folder):
        super().__init__(args, folder)
        self.meeting = os.path.join(folder, "meeting")
        self.environment = {"PYTHON_EXEC": args.python, "GLOO_SOCKET_IFNAME": "lo"}

    def launcher(self, tenure):
        return Keelrun.launcher(self, tenure)


class Torchft:
    """A replica group of one process a host, tuned; the lighthouse where nobody takes it away."""
    tells_epochs, exact, ours = True, False, False
    pythons, stores = ("torchft_python", "torchft"), ("stable",)

    def __init__(self, args, folder):
        self.args, port = args, free_port()
        self.checkpoint = os.path.join(folder, "checkpoint.pt")
        self.helper = cases.lighthouse(args.torchft_python, port, cases.TUNED_LIGHTHOUSE)
        # Else it logs ten lines a step.
        self.environment = {"TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}",
                            "GLOO_SOCKET_IFNAME": "lo", "RUST_LOG": "warn"}

    def command(self, tenure):
        return [self.args.torchft_python, f"{HERE}/../trainer/peers/torchft_job.py",
                f"--replica={tenure.seat}", f"--port={free_port()}",
                f"--timeout={TORCHFT_TIMEOUT_S}", f"--checkpoint={self.checkpoint}",
                f"--lanes={self.args.lanes}", f"--step-ms={self.args.lane_time}", *SMALL]

    @staticmethod
    def may_end(code, was_told):
        return True


SYSTEMS = {"keelrun": Keelrun, "torchrun": Torchrun, "keelrun-ddp": KeelrunDdp, "torchft": Torchft}


def why_not(name, args):
    """Why this system cannot run here with these options; None: it can."""
    system = SYSTEMS[name]
    if args.store not in system.stores:
        return (f"--store={args.store}: {name} needs a machine that nobody takes away, and has "
                "nothing that takes that one's place")
    if not system.pythons:
        return None
    option, module = system.pythons
    return cannot_import(getattr(args, option), module)


def why_no_step(codes, words):
    """Of a peer that ran and trained nothing; `codes`: how often its launchers ended with which,
    `words`: the last that one of them said."""
    ended = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    return (f"no host ever made a step; launchers that ended by themselves: {ended or 'none'}; "
            f"the last of the first: {words or 'nothing'}")
