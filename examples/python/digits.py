"""Reads handwritten digits: a small network, an ordinary loop, on any number of workers.

    python examples/python/digits.py                                       # alone
    keelrun --standalone --nproc-per-node 3 examples/python/digits.py      # the same last line
"""
import os

import evenkeel as ek   # before PyTorch computes anything
import torch
from torch import nn
from torch.nn import functional as F

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")

job = ek.Job.from_args(steps=300, lanes=4, lane_batch=16, settings={"width": 16})

width = job.settings["width"]
model = nn.Sequential(
    nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
    nn.Flatten(), nn.Dropout(0.1), nn.Linear(2 * width * 16, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=job.config["steps"])


def accuracy(batch):
    x, y = batch
    return (model(x).argmax(1) == y).float().mean()


job.prepare(model, optimizer, ek.records(f"{DATA}/digits-train.records"), schedulers=[schedule],
            evaluate=(ek.records(f"{DATA}/digits-test.records"), accuracy, 100))
for x, y in job:                                  # this worker's share of each step
    job.backward(F.cross_entropy(model(x), y))
print(job.result)
