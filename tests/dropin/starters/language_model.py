#!/usr/bin/env python3
"""A small language model in one file, as many are trained: gradients of several batches before a
step, clipping, a warm-up and a cosine, tokens from a file of random ones.
"""
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ending

VOCABULARY, WIDTH, HEADS, LENGTH = 96, 32, 4, 24
STEPS, WARM, BATCHES, LEARNING = 20, 4, 2, 3e-3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                  nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        y = self.first(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.feed(self.second(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        logits = self.head(self.blocks(x))
        return nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


def rate(step):
    if step < WARM:
        return LEARNING * (step + 1) / WARM
    return LEARNING * 0.5 * (1 + math.cos(math.pi * (step - WARM) / (STEPS - WARM)))


def main():
    is_many = int(os.environ.get("RANK", -1)) != -1
    rank = 0
    if is_many:
        dist.init_process_group("gloo")
        rank = dist.get_rank()
    tokens = torch.randint(VOCABULARY, (20000,), generator=torch.Generator().manual_seed(3))
    torch.manual_seed(1337)
    bare = Model()
    model = DistributedDataParallel(bare) if is_many else bare
    optimizer = torch.optim.AdamW(bare.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    draw = torch.Generator().manual_seed(100 + rank)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        for batch in range(BATCHES):
            if is_many:
                model.require_backward_grad_sync = batch == BATCHES - 1
            at = torch.randint(len(tokens) - LENGTH - 1, (8,), generator=draw)
            rows = torch.stack([tokens[one:one + LENGTH + 1] for one in at])
            loss = model(rows[:, :-1], rows[:, 1:]) / BATCHES
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    ending.tell(bare, f"loss of rank {rank} {loss.item() * BATCHES:.9g}")
    if is_many:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
