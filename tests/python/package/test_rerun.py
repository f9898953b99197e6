#!/usr/bin/env python3
"""ek.rerun: functions that use torch.distributed as they like, with real workers that die."""
import os
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "dropin")]
import launchers
import scripts

BEGINNING = """
import os, sys, time
import evenkeel as ek
import torch, torch.distributed as dist

calls, trains = 0, set()
HERE = os.path.dirname(os.path.abspath(__file__))

def say(*words):
    os.write(1, (" ".join(str(word) for word in words) + "\\n").encode())

def is_told(name):
    return os.path.exists(HERE + "/" + name)

def agreed(what):
    flag = torch.tensor([float(what)])
    dist.all_reduce(flag)
    return flag.item() > 0

def count(epoch):
    global calls
    calls += 1
    say("call", calls, "of", os.getpid(), "seat", epoch.local_rank, "epoch", epoch.number,
        "world", epoch.world)
"""
TRAIN = """
@ek.rerun
def train(epoch):
    count(epoch)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    while not agreed(is_told("end")):
        model(torch.ones(2, 3)).sum().backward()
        if epoch.number not in trains:
            trains.add(epoch.number)
            say("trains in", epoch.number)
        if agreed(epoch.stops):
            return ek.AGAIN
        if agreed(epoch.joins):
            return ek.AGAIN
        time.sleep(0.002)
    return epoch.world

say("result", train(), os.getpid())
"""


class Rerun(scripts.Watched):
    def begin(self, workers, text, *options):
        self.launch(workers, self.written(text, BEGINNING)[-1], *options)

    def test_survivors_keep_their_processes_and_a_newcomer_joins(self):
        """Unless they are in an exchange: of that, Gloo may lose a send, and wait for it for ever,
        if a peer is gone; whom the launcher then ends has not parked."""
        self.begin(3, TRAIN.replace("time.sleep(0.002)", """
        if agreed(is_told(f"rest in {epoch.number}")):
            say("rests in", epoch.number)
            time.sleep(1000)
        time.sleep(0.01)
"""), "--max-restarts=9")
        members = dict(self.found(r"call 1 of (\d+) seat (\d) epoch 1 world 3", 3))
        # Nobody imports anything more: that is not cut off, and may take long beside other work.
        self.found(r"trains in 1\n", 3)
        number = 1
        for death in range(1, 4):
            seat, rest = str(death % 3), death < 3
            if rest:
                self.tell(f"rest in {number}")
                self.found(rf"rests in {number}\n", 3)
            pid, = (one for one, its in members.items() if its == seat)
            os.kill(int(pid), signal.SIGKILL)
            newcomer = self.found(rf"call 1 of (?!{pid} )(\d+) seat {seat} epoch")[-1]
            # All of them together again, whether or not the others went on alone meanwhile.
            number = self.found(rf"call \d+ of {newcomer} seat {seat} epoch (\d+) world 3")[-1]
            survivors = {one: its for one, its in members.items() if one != pid}
            members = dict(self.found(rf"of (\d+) seat (\d) epoch {number} world 3", 3))
            not_parked = [] if rest else re.findall(
                r'local_rank=(\d) signal=SIGKILL reason="[^"]* did not park', self.read("err"))
            kept = {one: its for one, its in survivors.items() if its not in not_parked}
            self.assertEqual(members, members | kept | {newcomer: seat}, self.all_told())
            self.assertEqual(set(members.values()), {"0", "1", "2"}, self.all_told())
            self.found(rf"trains in {number}\n", 3)
        self.tell("end")
        self.ends(0)
        self.assertEqual(len(re.findall(r"result 3 \d+", self.read("out"))), 3, self.read("out"))
        self.assertIn("ek.rerun: the call is cut off", self.read("out"))

    def test_a_group_of_gloos_tells_whoever_waits_though_a_neighbour_is_gone(self):
        """Rank 0 waits for a word of rank 2, which lives and says nothing."""
        for detail in ("OFF", "DETAIL"):
            with self.subTest(detail=detail):
                run = self.alone(*self.written("""
import signal, threading
from evenkeel import _rerun

def member(rank):
    dist.init_process_group("gloo", init_method=f"file://{HERE}/" + os.environ["MEET_AT"],
                            rank=rank, world_size=3)
    dist.barrier()
    if rank == 1:
        os._exit(0)
    if rank == 2:
        time.sleep(1000)
    told = []

    def wait(source):
        try:
            dist.recv(torch.zeros(1), src=source)
        except RuntimeError as error:
            told.append(str(error))

    wait(1)                       # until it is seen to be gone
    thread = threading.Thread(target=wait, args=(2,))
    thread.start()
    while _rerun._end_waits(dist.group.WORLD) or thread.is_alive():
        time.sleep(0.01)          # it may not wait yet
    say("told", len(told))
    os._exit(0)

members = []
for rank in range(3):
    members.append(os.fork())
    if members[-1] == 0:
        member(rank)
say("ends", os.waitpid(members[0], 0)[1])
os.kill(members[2], signal.SIGKILL)
""", BEGINNING), TORCH_DISTRIBUTED_DEBUG=detail, MEET_AT=f"meeting of {detail}")
                self.assertEqual(run.out, "told 2\nends 0\n", run)

    def test_code_that_exchanges_nothing_is_cut_off(self):
        for idle in ("time.sleep(1000)", "sum(range(10 ** 5)); x = [i for i in range(10 ** 5)]",
                     "dist.recv(torch.zeros(1), src=(epoch.rank + 1) % epoch.world)"):
            with self.subTest(idle=idle):
                self.begin(2, f"""
@ek.rerun
def train(epoch):
    count(epoch)
    while epoch.number == 1:
        {idle}
    return epoch.world

say("result", train())
""", "--max-restarts=1", "--park-limit=60s")
                pid = self.found(r"call 1 of (\d+) seat 0", 1)[0]
                self.found(r"call 1 of \d+ seat 1")
                os.kill(int(pid), signal.SIGKILL)
                self.found(r"call 2 of \d+ seat 1")
                self.ends(0)
                self.assertNotIn("signal=SIGKILL", self.read("err"))

    def test_a_death_while_the_group_is_made(self):
        """Seat 0 is about to connect then, and seat 2 has not begun; the next group is one."""
        self.begin(3, """
made, begun = dist.distributed_c10d._new_process_group_helper, dist.init_process_group

def make(*args, **kwargs):
    say("making", os.getpid(), "seat", os.environ["RANK"])
    return made(*args, **kwargs)

def begin(*args, **kwargs):
    if os.environ["RANK"] != "0" and not is_told("killed"):
        say("waits", os.getpid(), "seat", os.environ["RANK"])
        time.sleep(1000)
    return begun(*args, **kwargs)

dist.distributed_c10d._new_process_group_helper, dist.init_process_group = make, begin
""" + TRAIN, "--max-restarts=9")
        survivors = self.found(r"making (\d+) seat 0")
        pid, = self.found(r"waits (\d+) seat 1")
        survivors += self.found(r"waits (\d+) seat 2")
        self.tell("killed")
        os.kill(int(pid), signal.SIGKILL)
        for one in survivors:   # alone, or with the newcomer already
            self.found(rf"call 1 of {one} seat [02] epoch [2-9]")
        self.tell("end")
        self.ends(0)

    def test_a_break_may_become_any_error_and_the_function_end_its_group(self):
        """A CheckpointException of PyTorch is such an error. All of it while a module is imported,
        which is the script itself. What ends with the loop, as a DataLoader's processes do, ends
        to the last."""
        self.begin(2, """
class Odd(BaseException):
    pass

class Ends:
    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __del__(self):
        for _ in range(100):
            time.sleep(0.002)
        say("ended to the last", calls, "of", os.getpid())

@ek.rerun
def train(epoch):
    count(epoch)
    try:
        for _ in Ends():
            if epoch.number > 1:
                break
            agreed(False)
    except BaseException as error:
        raise Odd("of its own") from error
    dist.destroy_process_group()
    return epoch.world

if __name__ == "__main__":
    import script
else:
    say("result", train())
""", "--max-restarts=1")
        pid = self.found(r"call 1 of (\d+) seat 0")[0]
        survivor, = self.found(r"call 1 of (\d+) seat 1")
        os.kill(int(pid), signal.SIGKILL)
        self.found(rf"call 2 of {survivor} seat 1")
        self.ends(0)
        self.assertIn(f"ended to the last 1 of {survivor}", self.read("out"))
        self.assertIn("result", self.read("out"))

    def test_a_stop_is_seen_by_the_function(self):
        self.begin(2, TRAIN)
        self.found("trains in 1", 2)
        self.process.send_signal(signal.SIGTERM)
        self.ends(75)
        self.assertNotIn("cut off", self.read("out"))

    def test_who_does_not_look_is_cut_off_for_a_stop(self):
        self.begin(2, """
@ek.rerun
def train(epoch):
    count(epoch)
    while True:
        agreed(False)

train()
""")
        self.found("call 1", 2)
        self.process.send_signal(signal.SIGTERM)
        self.ends(75)
        self.assertIn("does not look at epoch.stops", self.read("out"))

    def test_an_error_of_the_function_is_the_root_cause(self):
        self.begin(2, """
@ek.rerun
def train(epoch):
    if epoch.rank == 1:
        raise ValueError("out of chalk")
    agreed(False)
    time.sleep(1000)

train()
""", "--max-restarts=0")
        self.ends(1)
        self.assertIn("ValueError: out of chalk", self.read("err"))
        self.assertIn("in train", self.read("err"))

    def test_a_function_that_fails_in_every_group_ends(self):
        self.begin(2, """
@ek.rerun
def train(epoch):
    count(epoch)
    raise dist.DistNetworkError("of the function's own making")

train()
""", "--max-restarts=0")
        self.ends(1)
        self.assertIn("of the function's own making", self.read("err"))
        self.assertLessEqual(len(re.findall("call", self.read("out"))), 6)

    CALLED_TWICE = """
@ek.rerun
def train(epoch):
    return epoch.world

say("first", train())
say("second", train())
"""

    def test_a_worker_makes_one_call_and_whoever_is_alone_any_number(self):
        self.begin(2, self.CALLED_TWICE, "--max-restarts=0")
        self.ends(1)
        self.assertIn("first 2", self.read("out"))
        self.assertNotIn("second", self.read("out"))
        self.assertIn("a script calls one function of ek.rerun, once", self.read("err"))
        run = self.alone(*self.written(self.CALLED_TWICE, BEGINNING))
        self.assertEqual((run.code, run.out), (0, "first 1\nsecond 1\n"), run)

    def test_without_a_launcher_it_runs_alone(self):
        run = self.alone(*self.written(TRAIN.replace('is_told("end")', "calls > 1 or epoch.world"),
                                       BEGINNING))
        self.assertEqual(run.code, 0, run)
        self.assertIn("result 1 ", run.out)


if __name__ == "__main__":
    scripts.main(__doc__, launchers.find_python)
