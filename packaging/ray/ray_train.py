"""A training job on the nodes of a Ray cluster: one keelrun on each of them.

    python ray_train.py --nodes 4 -- --nproc-per-node=8 ./train --checkpoint-dir /shared/run

Promises   a node that dies is replaced by another one of the cluster, as soon as there is one; the
           others train on meanwhile, and the newcomer joins them. Where a node is refused (78) or
           left out (79), the others go on, if they are enough. Once the training has finished on
           one node, nothing is started again, and the exit code is 0. SIGTERM and SIGINT stop all:
           they save one step, and the exit code is 75.
Does not   choose nodes or scale the cluster. Start again what is misused (2) or has failed more
           often than --max-restarts allows (1): it stops all, and ends with that code, as with 78
           where all are refused.
Needs      Ray 2; keelrun on every node, also on those that come later.
"""
import argparse
import os
import signal
import subprocess
import sys
import time

import ray
from ray.exceptions import RayActorError
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

FINISHED = 0
STARTED_AGAIN = (75, 76, 77)  # stopped, saved or not; too few hosts
REFUSED = 78                  # this node does not fit, and would not the next time
LEFT_OUT = 79                 # the job goes on without this node
STOPPED = 75
PAUSE_S = 5                   # before a launcher is started again


@ray.remote(max_restarts=0, max_concurrency=2)
class Node:
    """The launcher of one node. run() takes one of its two threads, the other calls the other."""

    def __init__(self):
        self.launcher = None
        self.stopping = False

    def address(self):
        return ray.util.get_node_ip_address()

    def run(self, words):
        # Where Ray ends this process without a word, the launcher still saves and leaves.
        self.launcher = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "keelrun", *words],
                                         start_new_session=True)
        if self.stopping:   # it was told so before there was a launcher
            self.launcher.terminate()
        return self.launcher.wait()

    def stop(self):
        self.stopping = True
        if self.launcher:
            self.launcher.terminate()


class Job:
    def __init__(self, given):
        self.given = given
        self.id = f"ray-{ray.get_runtime_context().get_job_id()}"
        self.group = placement_group([{"CPU": given.cpus, **({"GPU": given.gpus} if given.gpus
                                                             else {})}] * given.nodes,
                                     strategy="STRICT_SPREAD")
        self.stopping = False
        self.nodes = {}      # number -> its Node
        self.addresses = {}  # number -> where it is
        self.calls = {}      # what is waited for -> number, and what it is
        self.due = {}        # number -> when its launcher is started again

    def place(self, number):
        """Asks for a Node on that place of the group: it may take until the cluster has one."""
        strategy = PlacementGroupSchedulingStrategy(self.group, number)
        node = Node.options(num_cpus=self.given.cpus, num_gpus=self.given.gpus,
                            scheduling_strategy=strategy).remote()
        self.nodes[number] = node
        self.calls[node.address.remote()] = number, "address"

    def launch(self, number):
        # A newcomer asks those that are there; only where nobody is, it begins the job itself.
        others = [self.addresses[one] for one in sorted(self.addresses) if one != number]
        mine = self.addresses[number]
        first, *more = [mine, *others] if number == min(self.addresses) else [*others, mine]
        endpoint = ",".join([f"{first}:{self.given.port}", *more])
        words = [f"--nnodes={self.given.least}:{self.given.nodes}", "--rdzv-backend=c10d",
                 f"--rdzv-id={self.id}", f"--rdzv-endpoint={endpoint}", f"--local-addr={mine}",
                 "--max-restarts=100", "--restart-window=1h", *self.given.words]
        self.calls[self.nodes[number].run.remote(words)] = number, "run"

    def stop(self, *_):
        """Also as the handler of signals."""
        self.stopping = True
        self.due.clear()
        for node in self.nodes.values():
            node.stop.remote()

    def lost(self, number):
        print(f"node {number} is lost; another one is asked for", flush=True)
        self.addresses.pop(number, None)
        self.calls = {call: what for call, what in self.calls.items() if what[0] != number}
        self.place(number)

    def ended(self, number, code):
        """What to do about it; a code other than None is that of the job."""
        print(f"node {number} ended with {code}", flush=True)
        was_killed = code < 0   # by the machine, as where its memory is used up
        if (code in STARTED_AGAIN or was_killed) and not self.stopping and self.given.restarts > 0:
            self.given.restarts -= 1
            self.due[number] = time.monotonic() + PAUSE_S
            return None
        del self.nodes[number]
        del self.addresses[number]
        if code in (REFUSED, LEFT_OUT) and self.others_go_on():
            return None
        # A launcher says 0 once the training has finished on all hosts: who is left is at its end,
        # too, or looks for a job that is over.
        if not self.stopping:
            self.stop()
        return code

    def others_go_on(self):
        """Whether there are enough of them, of which one at least has a launcher, or will."""
        launched = bool(self.due) or any(what == "run" for _, what in self.calls.values())
        return launched and not self.stopping and len(self.nodes) >= self.given.least

    def launch_what_is_due(self):
        if self.stopping:   # its signal may have come before the last one was noted
            self.due.clear()
        for number, at in list(self.due.items()):
            if at <= time.monotonic() and not self.stopping:
                self.due.pop(number, None)
                self.launch(number)

    def ready_calls(self):
        """Those that have an answer; after a second perhaps none."""
        if not self.calls:  # all wait to be started again
            time.sleep(1)
            return []
        return ray.wait(list(self.calls), timeout=1)[0]

    def goes_on(self):
        """Whether launchers run, or will; a node that is asked for is none to wait for once the
        job stops or has ended elsewhere."""
        waits = {what for _, what in self.calls.values()}
        return bool(self.due) or "run" in waits or ("address" in waits and not self.stopping)

    def run(self):
        for number in range(self.given.nodes):
            self.place(number)
        begun, codes = False, []
        while not begun or self.goes_on():
            if self.stopping and not begun:
                return STOPPED
            self.launch_what_is_due()
            for call in self.ready_calls():
                if call not in self.calls:
                    continue
                number, what = self.calls.pop(call)
                try:
                    value = ray.get(call)
                except RayActorError:
                    if not self.stopping:
                        self.lost(number)
                    continue
                if what == "address":
                    self.addresses[number] = value
                    if begun and not self.stopping:
                        self.launch(number)
                else:
                    codes.append(self.ended(number, value))
            if not begun and len(self.addresses) == self.given.nodes:
                begun = True
                for number in self.addresses:
                    self.launch(number)
        return code_of_job([code for code in codes if code is not None])


def code_of_job(codes):
    harmless = {FINISHED, LEFT_OUT, STOPPED}
    if FINISHED in codes:   # the training has, whatever became of those that were told to stop
        harmless |= {*STARTED_AGAIN, REFUSED, *(code for code in codes if code < 0)}
    bad = [code for code in codes if code not in harmless]
    return bad[0] if bad else FINISHED if FINISHED in codes else max(codes, default=STOPPED)


def main():
    parser = argparse.ArgumentParser(
        usage="ray_train.py --nodes N [options] -- [OPTIONS OF KEELRUN] PROGRAM [ARGUMENTS...]")
    parser.add_argument("--nodes", type=int, required=True, help="how many take part")
    parser.add_argument("--least", type=int, default=1, help="with how many it still goes on (1)")
    parser.add_argument("--cpus", type=float, default=1, help="of each node (1)")
    parser.add_argument("--gpus", type=float, default=0, help="of each node (0)")
    parser.add_argument("--port", type=int, default=29400, help="a free one, on all (29400)")
    parser.add_argument("--restarts", type=int, default=100,
                        help="how often launchers that stopped (75, 76, 77) are started again")
    parser.add_argument("words", nargs="+")
    given = parser.parse_args()
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"))
    job = Job(given)
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, job.stop)
    code = job.run()
    ray.shutdown()
    return code


if __name__ == "__main__":
    sys.exit(main())
