#!/usr/bin/env python3
"""A training script for tests: a choice of models, optimizers and ways to load, which says at each
step who and where it is, and what all lanes lost, as tests/trainer/model_train.cc does."""
import os
import sys

import evenkeel as ek
import torch
from torch import nn
from torch.nn import functional as F

SETTINGS = {"model": "mlp", "optimizer": "AdamW", "samples": 100, "workers": 0, "augment": False,
            "schedule-of": "none", "evaluate-every": 0, "clip": 0.0, "average": False}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.1),
                                    nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.1),
                                    nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


class Wide(nn.Module):
    """Its state is so large that newcomers catch up with it beside the others."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 1500), nn.ReLU(), nn.Dropout(0.1),
                                    nn.Linear(1500, 1000), nn.ReLU(), nn.Linear(1000, 10))

    def forward(self, x):
        return self.layers(x)


class Norms(nn.Module):
    """Convolutions with BatchNorm, which keeps buffers."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))

    def forward(self, x):
        return self.body(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary=16, width=16, length=8):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(length, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.1,
                                                batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length),
                             persistent=False)

    def forward(self, x):
        h = self.token(x) + self.place(torch.arange(x.shape[1]))
        return self.head(self.block(h, src_mask=self.mask, is_causal=True))


class Samples(torch.utils.data.Dataset):
    """Dicts, with noise drawn by each sample if it is asked for."""

    def __init__(self, data, target, augment):
        self.data, self.target, self.augment = data, target, augment

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x = self.data[index]
        if self.augment:
            x = x + torch.randn_like(x) * 0.1
        return {"x": x, "y": self.target[index]}


def made(model, samples, seed):
    if model == "gpt":
        return torch.ops.evenkeel.synthetic_text(seed, samples, 8, 16)
    shape = [3, 8, 8] if model == "norms" else [32]
    return torch.ops.evenkeel.synthetic_classes(seed, samples, shape, 10)


def optimizer_of(name, model):
    if name == "engine":
        return ek.AdamW()
    kind = getattr(torch.optim, name)
    return kind(model.parameters(), lr=1e-2, **({"momentum": 0.9} if name == "SGD" else {}))


def schedule_of(name, optimizer):
    if name == "cosine":
        return [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)]
    return []


def put(line):
    """In one write, whatever the interpreter does to print(): lines of workers do not mix."""
    os.write(1, f"{line}\n".encode())


def say(report):
    lanes = ",".join(f"{loss:.9g}" for loss in report["lane_losses"])
    put(f"step {report['step']} rank {report['rank']} of {report['world']} pid {os.getpid()} "
        f"loss {report['loss']:.9g} lanes {lanes}")


def told(report):
    if report["rank"] == 0:
        put(f"evaluation at {report['step']} of {report['samples']} samples "
            f"{report['value']:.17g}")


def main():
    job = ek.Job.from_args(steps=20, lanes=8, lane_batch=4, settings=SETTINGS)
    is_set = job.settings
    model = {"mlp": Mlp, "wide": Wide, "norms": Norms, "gpt": Gpt}[is_set["model"]]()
    optimizer = optimizer_of(is_set["optimizer"], model)
    samples, seed = is_set["samples"], job.config["seed"]
    data = Samples(*made(is_set["model"], samples, seed), is_set["augment"])

    def loss_of(batch):
        return F.cross_entropy(model(batch["x"]).flatten(0, -2), batch["y"].flatten())

    evaluate = None
    if is_set["evaluate-every"]:
        others = Samples(*made(is_set["model"], samples + 1, seed), False)
        evaluate = (others, loss_of, is_set["evaluate-every"])
    clip = is_set["clip"]
    say_step = say

    def clipped():
        nn.utils.clip_grad_norm_(model.parameters(), clip)

    if is_set["average"]:
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
        job.register("average", average)

        def say_step(report):
            average.update_parameters(model)
            say(report)

    job.prepare(model, optimizer, data, schedulers=schedule_of(is_set["schedule-of"], optimizer),
                num_workers=is_set["workers"], evaluate=evaluate, on_step=say_step,
                on_evaluation=told, before_apply=clipped if clip else None)
    for batch in job:
        job.backward(loss_of(batch))
    put(job.result)


if __name__ == "__main__":
    sys.exit(main())
