#!/usr/bin/env python3
"""A small DDP job with a step of --step-ms that recovers as torchrun has it: from its checkpoint.

Prints, at each committed step: "step N rank R of W pid P", and, where it went on from a checkpoint,
"resumed step=N" before. Takes --checkpoint FILE. With --lanes L a step takes as many times
--step-ms as the worker with most of L lanes has. With --phases tells how far its start is, and that
its group failed: "phase main|imported|group|model|error pid P".
"""
import argparse
import os
import sys
import time


def phase(name):
    """In one piece: print() writes the end of the line by itself, where another worker's may come
    between."""
    if "--phases" in sys.argv:
        os.write(1, f"phase {name} pid {os.getpid()}\n".encode())


phase("main")

import torch  # noqa: E402  the first line comes before
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

CHECKPOINT_EVERY = 20
phase("imported")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--step-ms", type=float, default=50)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--hidden", type=int, nargs=2, default=[1024, 700], metavar="WIDTH")
    parser.add_argument("--phases", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    phase("group")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    first, second = args.hidden
    net = nn.Sequential(nn.Linear(256, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(),
                        nn.Linear(second, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    step = 0
    if os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        print(f"resumed step={step}", flush=True)
    model = DistributedDataParallel(net)
    phase("model")
    step_s = -(-args.lanes // world) * args.step_ms / 1e3
    try:
        while True:
            began = time.monotonic()
            data = torch.randn(32, 256, generator=torch.Generator().manual_seed(step * 1000 + rank))
            optimizer.zero_grad()
            model(data).square().mean().backward()
            time.sleep(max(0.0, step_s - (time.monotonic() - began)))
            optimizer.step()
            step += 1
            print(f"step {step} rank {rank} of {world} pid {os.getpid()}", flush=True)
            if step % CHECKPOINT_EVERY == 0 and rank == 0:
                torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                            "step": step}, args.checkpoint + ".tmp")
                os.replace(args.checkpoint + ".tmp", args.checkpoint)
    except RuntimeError:   # a peer is gone: the launcher starts all again
        phase("error")
        sys.exit(1)


if __name__ == "__main__":
    main()
