#!/usr/bin/env python3
"""The job of torchrun_job.py on torchft: one replica group of one process.

Prints, at each committed step: "step N rank R of W pid P"; where the quorum changed, "quorum N"
before; and, where the job goes on from this process's own state, since nobody has a newer one,
"resumed step=N". Gradients are averaged by hand, since torchft's own DDP wrapper, --wrapper, fails
an assertion of its own where a peer dies in the all-reduce. With --lanes L a step takes as many
times --step-ms as the worker with most of L lanes has. At SIGTERM it ends its step, and leaves:
torchft has no way to tell the others, who wait until its heartbeats are missed.
"""
import argparse
import os
import signal
import time
from datetime import timedelta

import torch
from torch import nn
from torchft import Manager, ProcessGroupGloo
from torchft.ddp import DistributedDataParallel

CHECKPOINT_EVERY = 20


def average(manager, net):
    gradients = [parameter.grad for parameter in net.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    manager.allreduce(flat).wait()
    for gradient, part in zip(gradients, flat.split([one.numel() for one in gradients])):
        gradient.copy_(part.view_as(gradient))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replica", type=int, required=True)
    parser.add_argument("--port", type=int, required=True, help="of this replica's own TCPStore")
    parser.add_argument("--step-ms", type=float, default=50)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--hidden", type=int, nargs=2, default=[1024, 700], metavar="WIDTH")
    parser.add_argument("--timeout", type=float, default=30, metavar="SECONDS",
                        help="of Gloo's operations")
    parser.add_argument("--checkpoint", metavar="FILE", help="saved every 20 steps, and gone on "
                        "from where nobody has a newer state")
    parser.add_argument("--wrapper", action="store_true")
    return parser.parse_args()


def save(path, state):
    torch.save(state, f"{path}.{os.getpid()}")
    os.replace(f"{path}.{os.getpid()}", path)


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    first, second = args.hidden
    net = nn.Sequential(nn.Linear(256, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(),
                        nn.Linear(second, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    store = torch.distributed.TCPStore("127.0.0.1", args.port, is_master=True,
                                       wait_for_workers=False)

    def load(state):
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])

    def state():
        return {"net": net.state_dict(), "optimizer": optimizer.state_dict()}

    saved = {}
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint)
        load(saved)
    # From here on the others wait for this one.
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=args.timeout)), load_state_dict=load,
        state_dict=state, min_replica_size=1, rank=0, world_size=1, store_addr="127.0.0.1",
        store_port=args.port, replica_id=f"replica_{args.replica}", hostname="127.0.0.1")
    if saved:
        manager.load_state_dict(saved["manager"])
    model = DistributedDataParallel(manager, net) if args.wrapper else net
    leaving, quorum = [], None
    signal.signal(signal.SIGTERM, lambda *_: leaving.append(True))
    while not leaving:
        began = time.monotonic()
        seed = manager.current_step() * 1000 + args.replica
        data = torch.randn(32, 256, generator=torch.Generator().manual_seed(seed))
        manager.start_quorum()
        optimizer.zero_grad()
        model(data).square().mean().backward()
        if not args.wrapper:
            average(manager, net)
        world = manager.num_participants()
        if quorum is None and manager.is_participating():
            print(f"resumed step={manager.current_step()}", flush=True)
        if manager._quorum_id != quorum:   # there is no public name for it
            quorum = manager._quorum_id
            print(f"quorum {quorum}", flush=True)
        step_s = -(-args.lanes // max(world, 1)) * args.step_ms / 1e3
        time.sleep(max(0.0, step_s - (time.monotonic() - began)))
        if manager.should_commit():
            optimizer.step()
            step = manager.current_step()
            print(f"step {step} rank {args.replica} of {world} pid {os.getpid()}", flush=True)
            if args.checkpoint and step % CHECKPOINT_EVERY == 0 and \
                    manager.participating_rank() == 0:
                save(args.checkpoint, {**state(), "manager": manager.state_dict()})
    manager.shutdown(wait=False)
    os._exit(0)   # what Python tidies up else takes two seconds


if __name__ == "__main__":
    main()
