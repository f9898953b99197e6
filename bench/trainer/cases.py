"""The jobs that recovery.py kills something of: how each launcher starts the same small job.

Promises   each case names what dies and what is started again; torchrun and torchft both as they
           come and as well tuned as we know how.
Does not   watch anything. keelrun runs with its defaults everywhere.
"""
import collections
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/harness"))
from free_port import free_port  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# `hosts`: launchers. `dies`: worker, host (a launcher with its worker), or store (the host of the
# store). `again`: seconds until what died is started again, None: nobody does.
Case = collections.namedtuple("Case", "group start hosts dies again")

WORKER = "a worker is killed"
WORKER_OF_TWO = "a worker is killed, 2 launchers with one each"
BACK = "a launcher and its worker are killed, started again after 1 s"
GONE = "--nnodes=1:2, a launcher and its worker are killed, not replaced"
STORE = "the launcher that hosts the store is killed with its worker, started again after 1 s"

UNSHARED = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
TUNED_CONF = ("last_call_timeout=1,join_timeout=60,close_timeout=1,heartbeat_timeout=1,"
              "keep_alive_interval=1,keep_alive_max_attempt=2")
TUNED_LIGHTHOUSE = ["--heartbeat_timeout_ms", "1000", "--join_timeout_ms", "1000",
                    "--quorum_tick_ms", "20"]


def meeting(port, number, nnodes, conf=""):
    """How both launchers find each other; on one machine one must be told to host."""
    return [f"--nnodes={nnodes}", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=bench",
            f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1",
            f"--rdzv-conf={conf}{',' if conf else ''}is_host={int(number == 0)}"]


class Keelrun:
    """Evenkeel's launcher with its trainer, or, `ddp`, with the peers' script, unchanged."""
    is_launcher = True

    def __init__(self, nnodes=None, ddp=False):
        self.nnodes, self.ddp = nnodes, ddp

    def command(self, args, watched, number):
        where = meeting(watched.port, number, self.nnodes) if self.nnodes else \
            ["--standalone", "--nproc-per-node=2"]
        command = [f"{args.bin}/keelrun", *where, "--max-restarts=3", "--log-level=error"]
        if self.ddp:
            return command + ddp_script(args, watched), {"PYTHON_EXEC": args.python}
        return [*command, "--no-python", f"{args.bin}/model_train", "--steps=1000000", "--lanes=2",
                "--model=mlp", f"--pause={args.step_ms}ms"], {}


class Torchrun:
    """`unshared`: its workers get a store of their own, without which many restarts hang."""
    is_launcher = True

    def __init__(self, nnodes=None, standalone=False, tuned=False, unshared=False):
        self.nnodes, self.standalone = nnodes, standalone
        self.tuned, self.unshared = tuned, unshared or tuned

    def command(self, args, watched, number):
        if self.nnodes:
            where = meeting(watched.port, number, self.nnodes, TUNED_CONF if self.tuned else "")
            where += ["--monitor-interval=0.02"] if self.tuned else []
        else:
            where = ["--standalone"] if self.standalone else [f"--master-port={watched.port}"]
            where.append("--nproc-per-node=2")
        return [args.python, "-m", "torch.distributed.run", *where, "--max-restarts=3",
                *ddp_script(args, watched)], UNSHARED if self.unshared else {}


def ddp_script(args, watched):
    return [f"{HERE}/peers/torchrun_job.py", f"--checkpoint={watched.folder.name}/checkpoint.pt",
            f"--step-ms={args.step_ms}", "--phases"]


def lighthouse(python, port, flags):
    """torchft's, whom the replica groups ask with whom they train."""
    program = os.path.join(os.path.dirname(python), "torchft_lighthouse")
    return [program, "--min_replicas", "1", "--bind", f"[::]:{port}", *flags]


class Torchft:
    """One process a replica group; the lighthouse is started with the first."""
    is_launcher = False

    def __init__(self, tuned=False, wrapped=False):
        self.flags, self.wrapped = TUNED_LIGHTHOUSE if tuned else [], wrapped

    def command(self, args, watched, number):
        if not watched.processes:
            watched.start(lighthouse(args.torchft_python, watched.port, self.flags), None)
            time.sleep(0.3)
        return [args.torchft_python, f"{HERE}/peers/torchft_job.py", f"--replica={number}",
                f"--port={free_port()}", f"--step-ms={args.step_ms}",
                *(["--wrapper"] if self.wrapped else [])], \
            {"TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{watched.port}"}


CASES = {
    "keelrun": Case(WORKER, Keelrun(), 1, "worker", None),
    "keelrun, the DDP script": Case(WORKER, Keelrun(ddp=True), 1, "worker", None),
    "torchrun": Case(WORKER, Torchrun(standalone=True, unshared=True), 1, "worker", None),
    "torchft": Case(WORKER, Torchft(tuned=True), 2, "worker", 0),
    "torchrun, plain": Case(WORKER, Torchrun(), 1, "worker", None),
    "torchrun, --standalone": Case(WORKER, Torchrun(standalone=True), 1, "worker", None),
    "torchft, its defaults": Case(WORKER, Torchft(), 2, "worker", 0),
    "torchft, its DDP wrapper": Case(WORKER, Torchft(wrapped=True), 2, "worker", 0),
    "keelrun, 2 launchers": Case(WORKER_OF_TWO, Keelrun("2"), 2, "worker", None),
    "torchrun, 2 launchers": Case(WORKER_OF_TWO, Torchrun("2"), 2, "worker", None),
    "torchrun tuned, 2 launchers":
        Case(WORKER_OF_TWO, Torchrun("2", tuned=True), 2, "worker", None),
    "keelrun, launcher back": Case(BACK, Keelrun("2"), 2, "host", 1),
    "torchrun, launcher back": Case(BACK, Torchrun("2"), 2, "host", 1),
    "torchrun tuned, launcher back": Case(BACK, Torchrun("2", tuned=True), 2, "host", 1),
    "keelrun, launcher gone": Case(GONE, Keelrun("1:2"), 2, "host", None),
    "torchrun, launcher gone": Case(GONE, Torchrun("1:2"), 2, "host", None),
    "torchrun tuned, launcher gone": Case(GONE, Torchrun("1:2", tuned=True), 2, "host", None),
    "keelrun, store's launcher back": Case(STORE, Keelrun("2"), 2, "store", 1),
    "torchrun, store's launcher back": Case(STORE, Torchrun("2"), 2, "store", 1),
}
USUAL = ("keelrun", "torchrun", "torchft")
