"""Meets the other ranks as its argument says, `env` or `tcp`, and prints what they sum up to."""
import os
import sys

import torch
import torch.distributed as dist

env = os.environ
places = {"env": {"init_method": "env://"},
          "tcp": {"init_method": f"tcp://{env['MASTER_ADDR']}:{env['MASTER_PORT']}",
                  "rank": int(env["RANK"]), "world_size": int(env["WORLD_SIZE"])}}
dist.init_process_group("gloo", **places[sys.argv[1]])
ranks = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(ranks)
print(f"rank {dist.get_rank()} met by {sys.argv[1]}: {int(ranks)};\n", end="", flush=True)
dist.destroy_process_group()
