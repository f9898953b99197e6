#!/usr/bin/env python3
"""A user's script: trains a small classifier with DDP and Adam, as a class of its own, with the
error file that torch.distributed.elastic writes, its own seeds a rank, and gradient accumulation.

It knows nothing of any launcher but the environment that PyTorch documents.
"""
import datetime
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rings(Dataset):
    """Points of three rings, with the ring as the class."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(11)
        self.labels = torch.randint(0, 3, (count,), generator=generator)
        angle = 6.2831853 * torch.rand(count, generator=generator)
        radius = 1 + self.labels + 0.1 * torch.randn(count, generator=generator)
        self.points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(48, 3))

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, path):
        self.path = path
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        torch.manual_seed(1)
        self.net = Net()
        self.model = nn.parallel.DistributedDataParallel(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        data = Rings(99)  # the sampler pads; an even count of batches, so that none is left over
        self.sampler = DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, batch_size=5, sampler=self.sampler)
        self.epoch = 0
        self.resume()

    def resume(self):
        if os.path.exists(self.path):
            state = torch.load(self.path, map_location="cpu")
            self.net.load_state_dict(state["net"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.schedule.load_state_dict(state["schedule"])
            self.epoch = state["epoch"]
        say(f"rank {self.rank} starts at epoch {self.epoch}")
        dist.barrier()

    def save(self):
        # The running statistics of BatchNorm are those of rank 0, as DDP broadcasts them.
        if self.rank == 0:
            torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                        "schedule": self.schedule.state_dict(), "epoch": self.epoch},
                       self.path + ".new")
            os.replace(self.path + ".new", self.path)
        dist.barrier()

    def run_epoch(self):
        self.sampler.set_epoch(self.epoch)
        torch.manual_seed(1000 * self.epoch + self.rank)  # dropout
        total = torch.zeros(1)
        for number, (x, y) in enumerate(self.loader):
            loss = nn.functional.cross_entropy(self.model(x), y) / 2
            if number % 2 == 0:
                with self.model.no_sync():
                    loss.backward()
            else:
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += loss.detach()
        self.schedule.step()
        dist.all_reduce(total)
        self.epoch += 1
        return total.item()


def say(line):
    """In one write: the other rank writes to the same file."""
    print(line + "\n", end="", flush=True)


def digest(net):
    text = "".join(f"{name}{value.double().tolist()}" for name, value in net.state_dict().items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@record
def main():
    path, epochs, crash = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group(backend="gloo", init_method="env://",
                            timeout=datetime.timedelta(seconds=60))
    trainer = Trainer(path)
    while trainer.epoch < epochs:
        if (trainer.epoch == crash and trainer.rank == trainer.world - 1
                and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"):
            raise ValueError("a bad sample")
        loss = trainer.run_epoch()
        trainer.save()
        if trainer.rank == 0:
            say(f"epoch {trainer.epoch} loss {loss:.9g}")
    if trainer.rank == 0:
        say(f"{trainer.world} ranks ended with {digest(trainer.net)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
