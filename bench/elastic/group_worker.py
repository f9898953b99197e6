"""A foreign worker with a real group: says that it runs, and that its group stands; then steps."""
import os
import sys
import time


def say(line):
    """In one piece: print() writes the end of the line by itself, where another worker's may come
    between."""
    os.write(1, f"{line}\n".encode())


say(f"main {os.environ['RANK']} {os.getpid()}")

import torch  # noqa: E402  the first line comes before
import torch.distributed as dist  # noqa: E402

dist.init_process_group("gloo")
value = torch.ones(1)
dist.all_reduce(value)
say(f"group {os.environ['RANK']} {os.getpid()} {int(value)}")
try:
    while True:
        dist.all_reduce(value)
        time.sleep(0.05)
except RuntimeError as error:
    print(f"rank {os.environ['RANK']} lost its group: {error}", file=sys.stderr)
    sys.exit(1)
