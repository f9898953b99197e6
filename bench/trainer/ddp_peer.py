#!/usr/bin/env python3
"""The GPT of gpt_bench.cc under Python's DistributedDataParallel, with gradient accumulation in
place of lanes; prints the same line. Started as a worker of any launcher. With --checkpoint it goes
on from what is there, tells when it has made its first step, and saves at its end, by DCP."""
import argparse
import math
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.functional import cross_entropy, dropout, gelu, linear

WARM_UP = 3


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + dropout(self.project(self.attention(self.norm1(x))), 0.1, self.training)
        inner = gelu(self.widen(self.norm2(x)))
        return x + dropout(self.narrow(inner), 0.1, self.training)

    def attention(self, x):
        batch, length, width = x.shape
        query, key, value = self.attend(x).view(
            batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(weights.masked_fill(later, -math.inf), -1)
        weights = dropout(weights, 0.1, self.training)
        return (weights @ value).transpose(1, 2).reshape(batch, length, width)


class Gpt(nn.Module):
    def __init__(self, width, layers, length, vocabulary=256, heads=8):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        with torch.no_grad():
            self.tokens.weight.mul_(0.02)
            self.places.weight.mul_(0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return linear(self.norm(x), self.tokens.weight)


class Job:
    """What DCP saves and loads, in the way of its tutorial."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.step = model, optimizer, 0

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])
        self.step = state["step"]


def train(args):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        Gpt(args.width, args.layers, args.length).to(args.device), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=args.fused or None)
    generator = torch.Generator().manual_seed(rank)
    accumulate = args.lanes // world
    job = Job(model, optimizer)
    if args.checkpoint and os.path.exists(f"{args.checkpoint}/.metadata"):
        dcp.load({"job": job}, checkpoint_id=args.checkpoint)
    times, begun, last = [], job.step, time.perf_counter()
    for step in range(begun, args.steps):
        optimizer.zero_grad()
        for lane in range(accumulate):
            text = torch.randint(256, (args.lane_batch, args.length + 1), generator=generator)
            text = text.to(args.device)
            model.require_backward_grad_sync = lane == accumulate - 1
            logits = model(text[:, :-1])
            loss = cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()) / accumulate
            loss.backward()
        optimizer.step()
        if args.device != "cpu":
            torch.cuda.synchronize()
        now = time.perf_counter()
        if step == begun and args.checkpoint and rank == 0:
            print(f"step {step + 1} at {time.time_ns()}", flush=True)
        if step >= begun + WARM_UP:
            times.append(now - last)
        last = now
    if args.checkpoint:
        job.step = args.steps
        dcp.save({"job": job}, checkpoint_id=args.checkpoint)
    if rank == 0 and times:
        parameters = sum(one.numel() for one in model.parameters())
        print(f"steps={len(times)} median_step_s={statistics.median(times):.6f} "
              f"parameters={parameters}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("steps", 23), ("lanes", 2), ("lane-batch", 2), ("width", 256),
                        ("layers", 7), ("length", 32), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--checkpoint")
    parser.add_argument("--device", default="cpu", help="or cuda:0, over NCCL")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo" if args.device == "cpu" else "nccl")
    train(args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
