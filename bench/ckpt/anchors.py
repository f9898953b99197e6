#!/usr/bin/env python3
"""The yardsticks of a round: what this machine does with the same bytes, right now.

Prints RESULT {json}: bytes a second of memcpy, of write and fsync (buffered, and O_DIRECT), of a
cold read on one thread, and of zstd -1 on one core.
"""
import argparse
import json
import mmap
import os

import numpy as np
import torch
import zstandard
from common import evict, load_state, now

PIECE = 8 << 20


def write_buffered(path, raw):
    with open(path, "wb", buffering=0) as file:
        for array in raw:
            view = memoryview(array)
            for at in range(0, len(view), PIECE):
                file.write(view[at:at + PIECE])
        os.fsync(file.fileno())


def write_direct(path, total):
    """As many bytes from one aligned buffer, which is what O_DIRECT asks for."""
    buffer = mmap.mmap(-1, PIECE)
    buffer.write(os.urandom(PIECE))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
    for _ in range((total + PIECE - 1) // PIECE):
        os.write(file, buffer)
    os.fsync(file)
    os.close(file)


def read(path):
    buffer = bytearray(PIECE)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", required=True)
    parser.add_argument("--tmp", required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    state = load_state(f"{args.state}/state.safetensors")
    raw = [v.reshape(-1).view(torch.uint8).numpy() for v in state.values() if v.numel() > 1]
    total = sum(array.nbytes for array in raw)
    result = {"system": "anchors", "world": 1, "bytes": total}

    def timed(name, work):
        start = now()
        work()
        result[name] = total / (now() - start)

    into = [np.ones_like(array) for array in raw]
    timed("memcpy", lambda: [np.copyto(a, b) for a, b in zip(into, raw)])
    del into
    timed("memcpy_fresh", lambda: [array.copy() for array in raw])
    path = f"{args.tmp}/anchor.bin"
    os.sync()
    timed("write_fsync", lambda: write_buffered(path, raw))
    evict(path)
    timed("read_cold", lambda: read(path))
    os.unlink(path)
    os.sync()
    timed("write_direct", lambda: write_direct(path, total))
    os.unlink(path)
    coder = zstandard.ZstdCompressor(level=1)
    timed("zstd1", lambda: [coder.compress(array) for array in raw])
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
