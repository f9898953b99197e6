#!/usr/bin/env python3
"""A user's script: fits a small regression with DDP, and goes on from its checkpoint.

It knows nothing of any launcher but the environment that PyTorch documents.
"""
import argparse
import hashlib
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_data():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(96, 16, generator=generator)
    weights = torch.randn(16, 1, generator=generator)
    return TensorDataset(x, x @ weights + 0.1 * torch.randn(96, 1, generator=generator))


def save(path, model, optimizer, epoch):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
             "epoch": epoch}
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


def load(path, model, optimizer):
    """The epoch to begin with."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def say(line):
    """In one write: the other rank writes to the same file."""
    print(line + "\n", end="", flush=True)


def digest(model):
    whole = hashlib.sha256()
    for name, value in model.module.state_dict().items():
        whole.update(name.encode() + bytes(value.contiguous().view(torch.uint8).flatten().tolist()))
    return whole.hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--crash-epoch", type=int, default=-1,
                        help="rank 1 ends in it, in the first attempt")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = make_data()
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=3)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    first = load(args.checkpoint, model, optimizer)
    say(f"rank {rank} of {world} starts at epoch {first}")
    dist.barrier()  # nobody saves before all have loaded

    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if rank == 1 and attempt == 0 and epoch == args.crash_epoch:
                os._exit(13)
        if rank == 0:
            save(args.checkpoint, model, optimizer, epoch + 1)
        say(f"rank {rank} epoch {epoch} loss {loss.item():.9g}")
    say(f"rank {rank} of {world} ended with {digest(model)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
