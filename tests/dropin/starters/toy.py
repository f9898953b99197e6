#!/usr/bin/env python3
"""The tutorial's shape: a trainer class around DDP, which goes on from a snapshot of its own.

With FAILS_ONCE in the environment a rank fails in the middle of the first attempt.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

import ending

SNAPSHOT = os.path.join(os.environ["OUT"], "snapshot.pt")
SAVE_EVERY = 2
FAILS_IN = 3


class Points(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(11)
        self.items = [(torch.rand(20, generator=generator), torch.rand(1, generator=generator))
                      for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Trainer:
    def __init__(self, model, data, optimizer):
        self.rank = int(os.environ["LOCAL_RANK"])
        self.optimizer = optimizer
        self.epoch = 0
        self.model = model
        if os.path.exists(SNAPSHOT):
            snapshot = torch.load(SNAPSHOT)
            self.model.load_state_dict(snapshot["model"])
            self.epoch = snapshot["epoch"]
        dist.barrier()
        self.ddp = DistributedDataParallel(self.model)
        self.loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))

    def run_epoch(self):
        self.loader.sampler.set_epoch(self.epoch)
        for source, target in self.loader:
            self.optimizer.zero_grad()
            torch.nn.functional.mse_loss(self.ddp(source), target).backward()
            self.optimizer.step()

    def save(self):
        snapshot = {"model": self.model.state_dict(), "epoch": self.epoch}
        torch.save(snapshot, SNAPSHOT + ".part")
        os.replace(SNAPSHOT + ".part", SNAPSHOT)

    def train(self, epochs):
        fails = "FAILS_ONCE" in os.environ and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        while self.epoch < epochs:
            if fails and self.epoch == FAILS_IN and self.rank == 1:
                raise RuntimeError("a fault of the first attempt")
            self.run_epoch()
            self.epoch += 1
            if self.rank == 0 and self.epoch % SAVE_EVERY == 0:
                self.save()


def main(epochs):
    dist.init_process_group("gloo")
    torch.manual_seed(5)
    model = torch.nn.Linear(20, 1)
    trainer = Trainer(model, Points(512), torch.optim.SGD(model.parameters(), lr=0.05))
    trainer.train(epochs)
    ending.tell(model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
