#!/usr/bin/env python3
"""The job of torchrun_job.py on torchft: one replica group of one process.

Prints, at each committed step: "step N rank R of W pid P". Gradients are averaged by hand, since
torchft's own DDP wrapper, --wrapper, fails an assertion of its own where a peer dies in the
all-reduce.
"""
import argparse
import os
import time
from datetime import timedelta

import torch
from torch import nn
from torchft import Manager, ProcessGroupGloo
from torchft.ddp import DistributedDataParallel


def average(manager, net):
    gradients = [parameter.grad for parameter in net.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    manager.allreduce(flat).wait()
    for gradient, part in zip(gradients, flat.split([one.numel() for one in gradients])):
        gradient.copy_(part.view_as(gradient))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replica", type=int, required=True)
    parser.add_argument("--port", type=int, required=True, help="of this replica's own TCPStore")
    parser.add_argument("--step-ms", type=float, default=50)
    parser.add_argument("--wrapper", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 700), nn.ReLU(),
                        nn.Linear(700, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    store = torch.distributed.TCPStore("127.0.0.1", args.port, is_master=True,
                                       wait_for_workers=False)

    def load(state):
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=30)), load_state_dict=load,
        state_dict=lambda: {"net": net.state_dict(), "optimizer": optimizer.state_dict()},
        min_replica_size=1, rank=0, world_size=1, store_addr="127.0.0.1", store_port=args.port,
        replica_id=f"replica_{args.replica}", hostname="127.0.0.1")
    model = DistributedDataParallel(manager, net) if args.wrapper else net
    while True:
        began = time.monotonic()
        seed = manager.current_step() * 1000 + args.replica
        data = torch.randn(32, 256, generator=torch.Generator().manual_seed(seed))
        manager.start_quorum()
        optimizer.zero_grad()
        model(data).square().mean().backward()
        if not args.wrapper:
            average(manager, net)
        time.sleep(max(0.0, args.step_ms / 1e3 - (time.monotonic() - began)))
        world = manager.num_participants()
        if manager.should_commit():
            optimizer.step()
            print(f"step {manager.current_step()} rank {args.replica} of {world} "
                  f"pid {os.getpid()}", flush=True)


if __name__ == "__main__":
    main()
