#!/usr/bin/env python3
"""What checkpoint systems make of damage: ours beside PyTorch's, on two blocks of the real state.

  flip    one byte flipped in the payload, at places spread over it
  short   the payload one byte shorter: how many tensors had changed when the load failed
  key     into a model that lacks one of the tensors
  dtype   into a model that has one of them in bf16
  kill    SIGKILL at points spread over a save of a new state, an old one being there

Promises   one JSON line for each: {"what":"fault","fault":F,"system":S,"counts":{...}}; a load, in
           a process of its own, gives old, new, mixed, WRONG (neither, and no error) or error.
Does not   lose power: after a kill the page cache is still there.
"""
import argparse
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from common import load_state
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint._extension import ZStandard

warnings.filterwarnings("ignore")
PEERS = ["safetensors", "torch_save", "dcp", "dcp_zstd", "torchsnapshot"]
OURS = "keel"
KILL_LIMIT_S = 8
ARGS = None


# --- The peers ---

def save(system, state, path):
    os.makedirs(path, exist_ok=True)
    if system == "dcp":
        dcp.save(state, checkpoint_id=path)
    elif system == "dcp_zstd":
        dcp.save(state, storage_writer=dcp.FileSystemWriter(path, _extensions=[ZStandard()]))
    elif system == "torch_save":
        torch.save(state, f"{path}/state.pt")
    elif system == "safetensors":
        save_file(state, f"{path}/state.safetensors")
    else:
        import torchsnapshot
        torchsnapshot.Snapshot.take(path, {"s": torchsnapshot.StateDict(**state)})


def load(system, state, path):
    if system.startswith("dcp"):
        return dcp.load(state, checkpoint_id=path, no_dist=True)
    if system == "torchsnapshot":
        import torchsnapshot
        app = {"s": torchsnapshot.StateDict(**state)}
        torchsnapshot.Snapshot(path).restore(app)
        return state.update(app["s"])
    loaded = torch.load(f"{path}/state.pt", weights_only=True) if system == "torch_save" else \
        load_file(f"{path}/state.safetensors")
    for name, value in state.items():
        value.copy_(loaded[name])
    return None


def in_child(work):
    """What `work` returned, by JSON, from a fork, which a crash ends alone."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            said = work()
        except BaseException as error:   # the child's only way to tell
            said = ["error", 0, str(error)[:200]]
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else ["error", 0, "it crashed"]


def zeros(state):
    return {name: torch.zeros_like(value) for name, value in state.items()}


def judge(system, path, old, new):
    """[verdict, tensors changed by a load that failed, its words]."""
    got = zeros(new)
    try:
        load(system, got, path)
    except BaseException as error:   # also those that DCP makes of BaseException
        return ["error", sum(bool(value.count_nonzero()) for value in got.values()),
                str(error)[:200]]
    told = [(torch.equal(value, old[name]), torch.equal(value, new[name]))
            for name, value in got.items() if not torch.equal(old[name], new[name])]
    if not all(was or is_ for was, is_ in told):
        return ["WRONG", 0, ""]
    return ["new" if all(is_ for _, is_ in told) else "old" if all(was for was, _ in told)
            else "mixed", 0, ""]


# --- Ours, by ckpt_cycle ---

def as_checkpoint(name, tensors, step):
    """The tensors as a checkpoint of ours, which ckpt_cycle reads states from."""
    path, root = f"{ARGS.tmp}/{name}.safetensors", f"{ARGS.tmp}/{name}"
    shutil.rmtree(root, ignore_errors=True)
    save_file(tensors, path)
    subprocess.run([f"{ARGS.bin}/keel", "import", path, root, "--codec=none", f"--step={step}"],
                   check=True, stdout=subprocess.DEVNULL)
    os.unlink(path)
    return root


def load_ours(root, state):
    """ckpt_cycle's verdict on `root` for a program with the state of that checkpoint."""
    done = subprocess.run([f"{ARGS.bin}/ckpt_cycle", "load", f"--state={state}", f"--root={root}",
                           "--live"], input="\n", capture_output=True, text=True, check=False)
    found = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(found[0]) if found else {"error": done.stderr[-200:], "touched": 0}


def judge_ours(root, old, new):
    result = load_ours(root, new)
    if "error" in result:
        return ["error", result["touched"], result["error"][:200]]
    if result["ok"]:
        return ["new", 0, ""]
    result = load_ours(root, old)
    return ["old" if result.get("ok") else "WRONG", 0, ""]


# --- The faults ---

def payload(path):
    every = glob.glob(path + "/**", recursive=True, include_hidden=True)
    return max((file for file in every if os.path.isfile(file)), key=os.path.getsize)


def damaged(file, places):
    """Flips one byte after the other, each for as long as it is looked at."""
    size = os.path.getsize(file)
    for place in range(places):
        with open(file, "r+b") as opened:
            at = int(size * (place + 0.5) / places)
            opened.seek(at)
            was = opened.read(1)
            opened.seek(at)
            opened.write(bytes([was[0] ^ 0xFF]))
            opened.flush()
            yield
            opened.seek(at)
            opened.write(was)


def put(fault, system, verdicts, **more):
    failed = [verdict for verdict in verdicts if verdict[0] == "error"]
    print(json.dumps({
        "what": "fault", "fault": fault, "system": system,
        "counts": collections.Counter(verdict[0] for verdict in verdicts),
        "touched": max((verdict[1] for verdict in failed), default=None),
        "said": failed[0][2] if failed else None, **more}), flush=True)


def damage(system, path, look, tensors):
    file = payload(path)
    put("none", system, [look()])
    put("flip", system, [look() for _ in damaged(file, ARGS.flips)])
    os.truncate(file, os.path.getsize(file) - 1)
    put("short", system, [look()], tensors=tensors)


def fit(system, into, into_model):
    """What a load into a model with other tensors gives: no error, or which."""
    def look():
        into_model()
        return ["no error", 0, ""]
    put(into, system, [in_child(look)])


def damage_peers(old, new, less, other):
    for system in PEERS:
        path = f"{ARGS.tmp}/peer"
        shutil.rmtree(path, ignore_errors=True)
        failed = in_child(lambda: save(system, new, path))
        if failed:
            put("none", system, [failed])
            continue
        if system == "dcp":
            fit(system, "key", lambda: load(system, zeros(less), path))
            fit(system, "dtype", lambda: load(system, zeros(other), path))
        damage(system, path, lambda: in_child(lambda: judge(system, path, old, new)), len(new))


def damage_ours(old, new, less, other, tensors):
    root = f"{ARGS.tmp}/ours"
    shutil.rmtree(root, ignore_errors=True)
    save_ours(root, new, 1, 1).wait()
    for fault, state in (("key", less), ("dtype", other)):
        result = load_ours(root, state)
        put(fault, OURS, [["error" if "error" in result else "no error", 0,
                           result.get("error", "")[:200]]])
    damage(OURS, root, lambda: judge_ours(root, old, new), tensors)


# --- Kills in the middle of a save ---

class OurSave:
    """A save by ckpt_cycle processes, which vote as measure.py has them do."""

    def __init__(self, root, state, world, attempt):
        self.parts = [subprocess.Popen(
            [f"{ARGS.bin}/ckpt_cycle", "save", f"--state={state}", f"--root={root}",
             f"--part={part}", f"--parts={world}", f"--attempt={attempt:016x}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for part in range(world)]
        self.expect("READY")
        self.began = time.perf_counter()
        self.tell()

    def expect(self, word):
        return all([part.stdout.readline().startswith(word) for part in self.parts])

    def tell(self):
        for part in self.parts:
            try:
                part.stdin.write("\n")
                part.stdin.flush()
            except BrokenPipeError:
                pass   # it was killed

    def wait(self):
        if self.expect("RESULT"):
            self.tell()
            self.expect("DONE")
        took = time.perf_counter() - self.began
        for part in self.parts:   # who waits for the word to commit that never comes
            part.stdin.close()
            part.wait()
            part.stdout.close()
        return took

    def pids(self):
        return [part.pid for part in self.parts]


def save_ours(root, state, world, attempt):
    return OurSave(root, state, world, attempt)


class DcpSave:
    def __init__(self, path, state, world):
        self.store = f"{ARGS.tmp}/store{time.time_ns()}"
        self.children, readers = [], []
        for rank in range(world):
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                self.rank(path, state, rank, world, writer)
            os.close(writer)
            self.children.append(pid)
            readers.append(reader)
        for reader in readers:
            os.read(reader, 1)
            os.close(reader)
        self.began = time.perf_counter()

    def rank(self, path, state, rank, world, writer):
        try:
            dist.init_process_group("gloo", store=dist.FileStore(self.store, world), rank=rank,
                                    world_size=world)
            dist.barrier()
            os.write(writer, b"s")
            dcp.save(state, checkpoint_id=path)
        finally:
            os._exit(0)

    def pids(self):
        return self.children

    def wait(self):
        left, late = set(self.children), time.perf_counter() + KILL_LIMIT_S
        while left:
            left = {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0] == 0}
            if left and time.perf_counter() > late:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        if os.path.exists(self.store):
            os.unlink(self.store)
        return time.perf_counter() - self.began


def kill_trials(system, world, victims, begin, refill, look):
    """`begin` starts a save of the new state over what `refill` put there."""
    took = []
    for _ in range(3):
        refill()
        took.append(begin().wait())
        if look()[0] != "new":
            raise SystemExit(f"{system} did not save what is to be killed while it saves")
    verdicts = []
    for point in range(ARGS.kills):
        refill()
        running = begin()
        time.sleep(sorted(took)[1] * (point + 0.5) / ARGS.kills)
        for victim in victims:
            os.kill(running.pids()[victim], signal.SIGKILL)
        running.wait()
        verdicts.append(look())
    fault = "kill" if world == 1 else f"kill {'both' if len(victims) == 2 else 'one'} of 2"
    put(fault, system, verdicts, save_s=sorted(took)[1])


def kills(old, new, old_root, new_root):
    def refill(master, path):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(master, path)

    dcp_master, ours_master = f"{ARGS.tmp}/dcp-old", f"{ARGS.tmp}/ours-old"
    for master in (dcp_master, ours_master):
        shutil.rmtree(master, ignore_errors=True)
    in_child(lambda: save("dcp", old, dcp_master))
    save_ours(ours_master, old_root, 1, 1).wait()
    path, root = f"{ARGS.tmp}/dcp", f"{ARGS.tmp}/ours"
    for world, victims in ((1, (0,)), (2, (0, 1)), (2, (1,))):
        kill_trials("dcp", world, victims, lambda: DcpSave(path, new, world),
                    lambda: refill(dcp_master, path),
                    lambda: in_child(lambda: judge("dcp", path, old, new)))
        kill_trials(OURS, world, victims, lambda: save_ours(root, new_root, world, 2),
                    lambda: refill(ours_master, root),
                    lambda: judge_ours(root, old_root, new_root))


def main():
    global ARGS
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--bin", "--state", "--tmp"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    parser.add_argument("--flips", type=int, default=50)
    parser.add_argument("--kills", type=int, default=100)
    ARGS = parser.parse_args()
    os.makedirs(ARGS.tmp, exist_ok=True)
    torch.set_num_threads(1)
    new = {name: value for name, value in load_state(f"{ARGS.state}/state.safetensors").items()
           if ".blocks." not in name or name.split(".blocks.")[1].split(".")[0] in ("0", "1")}
    old = {name: value + 1 for name, value in new.items()}
    first = next(name for name, value in new.items() if value.dim() == 2)
    less = {name: value for name, value in new.items() if name != first}
    other = {**new, first: new[first].bfloat16()}
    old_root, new_root = as_checkpoint("old", old, 1), as_checkpoint("new", new, 2)
    damage_peers(old, new, less, other)
    damage_ours(old_root, new_root, as_checkpoint("less", less, 2),
                as_checkpoint("other", other, 2), len(new))
    kills(old, new, old_root, new_root)


if __name__ == "__main__":
    sys.exit(main())
