"""How each launcher is started on a host of a replay, and how its jobs end.

Promises   each as its users would for hosts that come and go: --nnodes=1:N, one second of last
           call, a checkpoint directory that all share. The endpoint is on this machine.
"""
import glob
import os
import re
import subprocess
import sys

import fleet

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/harness"))
from free_port import free_port  # noqa: E402

STEP_DIR = re.compile(r"step-0*(\d+)$")
FOR_EVER = 10 ** 9
HERE = os.path.dirname(os.path.abspath(__file__))


class Keelrun:
    """Evenkeel's launcher and trainer: workers survive in place."""
    tells_epochs, exact, ours = True, True, True

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.port = free_port()
        self.environment = {}
        self.checkpoints = os.path.join(folder, "checkpoints")

    def launcher(self, tenure):
        conf = "last_call_timeout=1"
        if self.args.store == "stable":
            conf += f",is_host={int(not tenure.is_spot)}"
        return [f"{self.args.bin}/keelrun", f"--nnodes=1:{self.args.max_hosts}",
                "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=replay",
                f"--rdzv-endpoint=127.0.0.1:{self.port}", f"--rdzv-conf={conf}",
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
    """PyTorch's launcher, as well tuned as we know how, and a DDP script that saves."""
    tells_epochs, exact, ours = False, False, False

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
                f"--step-ms={self.args.lane_time}"]

    @staticmethod
    def may_end(code, was_told):
        return True   # its codes tell nothing


class KeelrunDdp(Torchrun):
    """The same DDP script, unchanged, under keelrun."""
    ours = True

    def __init__(self, args, folder):
        super().__init__(args, folder)
        self.environment = {"PYTHON_EXEC": args.python, "GLOO_SOCKET_IFNAME": "lo"}

    def launcher(self, tenure):
        return Keelrun.launcher(self, tenure)


SYSTEMS = {"keelrun": Keelrun, "torchrun": Torchrun, "keelrun-ddp": KeelrunDdp}


def python_with_torch(root):
    """The one that tools/setup.sh makes, else ours."""
    made = os.path.join(root, ".deps/venv/bin/python")
    return made if os.path.exists(made) else sys.executable
