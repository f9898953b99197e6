#!/usr/bin/env python3
"""Makes a real training state to measure checkpoints with: trained numbers compress unlike noise.

Trains a byte-level GPT (12 layers of 512, 38 M parameters) with AdamW on text found on this
machine, and writes state.safetensors (parameters, moments, step counters, random state) and
meta.json to --out. Promises the same model and optimizer everywhere, not the same text.
"""
import argparse
import glob
import hashlib
import json
import os
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

TEXTS = ["/usr/share/common-licenses/*", "/usr/share/doc/**/copyright", "/usr/share/doc/**/*.txt",
         "/usr/share/doc/**/README*", "/usr/share/perl*/**/*.p[lm]", "/usr/lib/python3*/**/*.py"]
CONTEXT = 128


def corpus(limit):
    """Different files, in order of name, at most `limit` bytes."""
    seen, parts, size = set(), [], 0
    for path in (p for g in TEXTS for p in sorted(glob.glob(g, recursive=True))):
        if not os.path.isfile(path) or path.endswith(".gz") or size >= limit:
            continue
        with open(path, "rb") as file:
            text = file.read(1 << 20)
        digest = hashlib.sha1(text).digest()
        if len(text) >= 200 and digest not in seen:
            seen.add(digest)
            parts.append(text)
            size += len(text)
    return b"".join(parts)[:limit]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (part.view(batch, time_, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(batch, time_, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, width=512, heads=8):
        super().__init__()
        self.token, self.place = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                into_sum = name.endswith(("proj.weight", "down.weight"))
                nn.init.normal_(parameter, 0, 0.02 / (2 * layers) ** 0.5 if into_sum else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, x):
        hidden = self.token(x) + self.place.weight[:x.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def flat_state(model, optimizer):
    names = {id(p): name for name, p in model.named_parameters()}
    state = {f"model.{name}": value for name, value in model.state_dict().items()}
    for parameter, moments in optimizer.state.items():
        for key, value in moments.items():
            state[f"optim.{key}.{names[id(parameter)]}"] = value
    state["rng"] = torch.get_rng_state()
    return {name: value.detach().contiguous().clone() for name, value in state.items()}


def train(model, optimizer, tokens, steps, batch):
    losses, start = [], time.monotonic()
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = 6e-4 * min(1, step / 40)
        at = torch.randint(len(tokens) - CONTEXT - 1, (batch,))
        x = torch.stack([tokens[i:i + CONTEXT + 1] for i in at]).long()
        loss = F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 0:
            mean = sum(losses[-20:]) / 20
            took = time.monotonic() - start
            print(f"step {step}/{steps} loss {mean:.3f} {took:.0f} s", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--layers", type=int, default=12)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    torch.manual_seed(1234)
    text = corpus(24 << 20)
    model = Gpt(args.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    losses = train(model, optimizer, tokens, args.steps, args.batch)
    state = flat_state(model, optimizer)
    save_file(state, f"{args.out}/state.safetensors")
    meta = {"state_bytes": sum(v.numel() * v.element_size() for v in state.values()),
            "parameters": sum(p.numel() for p in model.parameters()), "steps": args.steps,
            "first_loss": losses[0], "last_loss": losses[-1], "text_bytes": len(text),
            "text_sha256": hashlib.sha256(text).hexdigest(), "torch": torch.__version__}
    with open(f"{args.out}/meta.json", "w", encoding="utf-8") as file:
        json.dump(meta, file, indent=1)
    print(meta)


if __name__ == "__main__":
    main()
