"""The twin of examples/minimal/minimal_train.cc: model, samples, optimizer and settings."""
import evenkeel as ek
import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer0 = nn.Linear(32, width)
        self.layer1 = nn.Linear(width, width)
        self.layer2 = nn.Linear(width, 10)

    def forward(self, x):
        x = F.dropout(torch.relu(self.layer0(x)), 0.1, self.training)
        x = F.dropout(torch.relu(self.layer1(x)), 0.1, self.training)
        return self.layer2(x)


job = ek.Job.from_args(steps=100, lanes=8, lane_batch=8,
                       settings={"model.width": 64, "samples": 1024})
model = Mlp(job.settings["model.width"])
samples = ek.synthetic_classes(job.settings["samples"], seed=job.config["seed"])
job.prepare(model, ek.AdamW(), samples)
for x, y in job:
    job.backward(F.cross_entropy(model(x), y))
print(job.result)
