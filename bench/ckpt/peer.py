#!/usr/bin/env python3
"""One save and one load by one of PyTorch's checkpoint systems, as one rank of a torchrun.

Prints RESULT {json} on rank 0: seconds the trainer was blocked, until durable, of the load from a
cold page cache; CPU, memory, bytes. Beside an async save the trainer keeps stepping, and what its
steps lose counts as stall. The load is compared with the state.
"""
import argparse
import json
import os
import shutil
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint._extension import ZStandard
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from common import bytes_of, evict, load_state, make_durable, now, reset_peak_mb, status_mb

warnings.filterwarnings("ignore")


def agree(value, op=dist.ReduceOp.MAX):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, op=op)
    return tensor.item()


class Trainer:
    """Steps of a few milliseconds, and how long one takes when nothing else goes on."""

    def __init__(self):
        self.net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(),
                                       torch.nn.Linear(1024, 256))
        self.x = torch.randn(256, 256)
        for _ in range(10):
            self.step()
        cpu = time.process_time()
        self.alone_s = sorted(self.step() for _ in range(60))[30]
        self.alone_cpu_s = (time.process_time() - cpu) / 60

    def step(self):
        start = now()
        self.net(self.x).square().mean().backward()
        self.net.zero_grad()
        return now() - start


def save(system, state, path):
    """A future of the upload, or None when it is done."""
    if system in ("torch_save", "safetensors"):  # rank 0 writes, the others wait
        if dist.get_rank() == 0:
            if system == "torch_save":
                torch.save(state, path + "/state.pt")
            else:
                from safetensors.torch import save_file
                save_file(state, path + "/state.safetensors")
            make_durable(path)
        dist.barrier()
    elif system == "dcp":
        dcp.save(state, checkpoint_id=path)
    elif system == "dcp_zstd":
        dcp.save(state, storage_writer=dcp.FileSystemWriter(path, _extensions=[ZStandard()]))
    elif system == "dcp_async":
        return dcp.async_save(state, checkpoint_id=path)
    elif system == "dcp_async_process":
        # A new stager each time: torch 2.11.0 raises KeyError where one is used twice.
        stager = DefaultStager(StagingOptions(False, True, False, False))
        made = dcp.async_save(state, checkpoint_id=path, async_stager=stager,
                              async_checkpointer_type=AsyncCheckpointerType.PROCESS)
        return getattr(made, "upload_completion", made)
    elif system == "torchsnapshot":
        import torchsnapshot
        torchsnapshot.Snapshot.take(path, {"s": torchsnapshot.StateDict(**state)},
                                    replicated=["**"])
    else:
        raise ValueError(f"no system {system}")
    return None


def load(system, state, path):
    if system.startswith("dcp"):
        dcp.load(state, checkpoint_id=path)
        return
    if system == "torchsnapshot":
        import torchsnapshot
        app = {"s": torchsnapshot.StateDict(**state)}
        torchsnapshot.Snapshot(path).restore(app)
        state.update(app["s"])
        return
    if system == "torch_save":
        loaded = torch.load(path + "/state.pt", weights_only=True)
    else:
        from safetensors.torch import load_file
        loaded = load_file(path + "/state.safetensors")
    for name, value in loaded.items():
        state[name].copy_(value)


def wake_daemon(state, path):
    """What saves from a process of its own has it from its first save on, which is not measured."""
    save("dcp_async_process", state, path).result()
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(path)
        os.makedirs(path)
    dist.barrier()


def measure_save(system, state, path, trainer):
    if dist.get_rank() == 0:
        os.sync()
    dist.barrier()
    before_mb, start, cpu, during = reset_peak_mb(), now(), time.process_time(), []
    upload = save(system, state, path)
    call = now() - start
    if upload is not None:
        while not upload.done():
            during.append(trainer.step())
        upload.result()
    dist.barrier()
    if dist.get_rank() == 0:
        make_durable(path)
    dist.barrier()
    durable = now() - start
    cpu = time.process_time() - cpu - trainer.alone_cpu_s * len(during)
    slow = sum(during) - trainer.alone_s * len(during)
    return {"call_s": agree(call), "durable_s": agree(durable), "slow_s": agree(slow),
            "cpu_s": agree(cpu, dist.ReduceOp.SUM), "steps": len(during), "bytes": bytes_of(path),
            "step_ms": 1e3 * trainer.alone_s,
            "peak_mb": agree(status_mb("VmHWM") - before_mb, dist.ReduceOp.SUM)}


def measure_load(system, state, path, expected_path):
    for value in state.values():
        value.zero_()
    if dist.get_rank() == 0:
        evict(path)
    dist.barrier()
    before_mb, start, cpu = reset_peak_mb(), now(), time.process_time()
    load(system, state, path)
    took, cpu = now() - start, time.process_time() - cpu
    peak = status_mb("VmHWM") - before_mb
    expected = load_state(expected_path)
    same = all(torch.equal(expected[name], state[name]) for name in expected)
    return {"load_s": agree(took), "load_cpu_s": agree(cpu, dist.ReduceOp.SUM),
            "load_peak_mb": agree(peak, dist.ReduceOp.SUM),
            "ok": agree(float(same), dist.ReduceOp.MIN) == 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--state", "--tmp", "--system"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    state_file, path = f"{args.state}/state.safetensors", f"{args.tmp}/ck"
    state = load_state(state_file)
    if dist.get_rank() == 0:
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    dist.barrier()
    result = {"system": args.system, "world": dist.get_world_size()}
    if args.system == "dcp_async_process":
        wake_daemon(state, path)
    result |= measure_save(args.system, state, path, Trainer())
    result |= measure_load(args.system, state, path, state_file)
    if dist.get_rank() == 0:
        print("RESULT " + json.dumps(result), flush=True)
        shutil.rmtree(path, ignore_errors=True)
    dist.barrier()
    if args.system == "dcp_async_process":
        os._exit(0)   # its daemon would be waited for
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
