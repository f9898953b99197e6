"""Jobs that meet in an etcd cluster: launchers at loopback addresses of their own.

Promises   what tests/failover/machines.py does, with etcd in place of the host that keeps the
           board.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../failover"))
import machines  # noqa: E402

OPENED = re.compile(r" board-opened term=(\d+) ")
LEFT = re.compile(r" board-left term=(\d+) ")


class Job(machines.Job):
    """`conf`: what --rdzv-conf needs besides. `environment`: of the launchers, besides."""

    def __init__(self, keelrun, cluster, command, nnodes="2:3", conf="", environment=(),
                 job="etcd"):
        super().__init__(keelrun, command, nnodes)
        self.cluster, self.conf = cluster, machines.CONF + conf
        self.environment, self.job = dict(environment), job

    def start(self, number, command=None, endpoints=None, conf=None, backend="etcd"):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PET_", "TORCH", "KEELRUN_", "KEEL_ETCD_"))}
        clean |= {"TMPDIR": self.folder, "OMP_NUM_THREADS": "1", self.mark[0]: self.mark[1]}
        clean |= self.environment
        words = [self.keelrun, f"--nnodes={self.nnodes}", "--nproc-per-node=1",
                 f"--rdzv-backend={backend}", f"--rdzv-id={self.job}",
                 f"--rdzv-conf={conf or self.conf}",
                 f"--rdzv-endpoint={endpoints or self.cluster.endpoints()}",
                 f"--local-addr=127.0.0.{number}", *self.options, "--no-python"]
        machine = machines.Machine(number, [*words, *(command or self.command)], clean,
                                   self.folder,
                                   ("KEEL_FAILOVER_HOST", f"{self.run}.{len(self.started)}"))
        self.started.append(machine)
        self.machines[number] = machine
        return machine

    def coordinator(self):
        """The machine that holds the highest term."""
        def term(machine):
            return max((int(one[1]) for one in map(OPENED.search, machine.lines) if one),
                       default=0)
        return max(self.machines.values(), key=term)
