#!/usr/bin/env python3
"""How far a real training state compresses, part by part: zstd -1 as the bytes lie, zstd -1 with
the words' bytes in planes of their own, and `keel import`, which is what our checkpoints hold.

Prints one JSON line a part. Of our ratio the manifest and all digests are a part.
"""
import argparse
import json
import os
import shutil
import subprocess

import numpy as np
import torch
import zstandard
from common import bytes_of, load_state
from safetensors.torch import save_file

PARTS = {"whole state": ("",), "parameters": ("model.",), "first moments": ("optim.exp_avg.",),
         "second moments": ("optim.exp_avg_sq.",), "parameters in bf16": ("model.",)}


def plain(coder, raw, width):
    return len(coder.compress(raw))


def planes(coder, raw, width):
    words = raw.reshape(-1, width)
    return sum(len(coder.compress(np.ascontiguousarray(words[:, byte]))) for byte in range(width))


def ours(args, tensors):
    path, root = f"{args.tmp}/part.safetensors", f"{args.tmp}/part"
    shutil.rmtree(root, ignore_errors=True)
    save_file(tensors, path)
    subprocess.run([f"{args.bin}/keel", "import", path, root], check=True,
                   stdout=subprocess.DEVNULL)
    size = bytes_of(root)
    shutil.rmtree(root)
    os.unlink(path)
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--bin", "--state", "--tmp"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    state = load_state(f"{args.state}/state.safetensors")
    coder = zstandard.ZstdCompressor(level=1)
    for part, prefixes in PARTS.items():
        tensors = {name: value for name, value in state.items()
                   if name.startswith(prefixes) and value.numel() > 1}
        if part.endswith("bf16"):
            tensors = {name: value.bfloat16() for name, value in tensors.items()}
        raw = [(value.reshape(-1).view(torch.uint8).numpy(), value.element_size())
               for value in tensors.values()]
        total = sum(array.nbytes for array, _ in raw)
        print(json.dumps({
            "what": "ratio", "part": part, "bytes": total,
            "zstd1": total / sum(plain(coder, *one) for one in raw),
            "planes": total / sum(planes(coder, *one) for one in raw),
            "keel": total / ours(args, tensors)}), flush=True)


if __name__ == "__main__":
    main()
