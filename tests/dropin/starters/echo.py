#!/usr/bin/env python3
"""What people run first: every rank says who it is, and all add up their numbers."""
import os

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    number = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(number)
    told = " ".join(f"{name}={os.environ[name]}" for name in (
        "RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
        "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"))
    print(f"ended: {told}, sum {number.item():.0f}\n", end="", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
