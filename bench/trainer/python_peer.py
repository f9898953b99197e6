#!/usr/bin/env python3
"""The GPT of gpt_bench.cc, as ddp_peer.py has it, under the package; prints the same line."""
import statistics
import sys
import time

import evenkeel as ek
import torch
from torch.nn.functional import cross_entropy

from ddp_peer import WARM_UP, Gpt

OPTIMIZERS = ("engine", "fused", "default")


def main():
    job = ek.Job.from_args(steps=23, lanes=2, lane_batch=2, log_every=0, settings={
        "width": 256, "layers": 7, "length": 32, "optimizer": "engine"})
    of = job.settings
    if of["optimizer"] not in OPTIMIZERS:
        sys.exit(f"--optimizer must be one of: {', '.join(OPTIMIZERS)}")
    model = Gpt(of["width"], of["layers"], of["length"])
    optimizer = ek.AdamW() if of["optimizer"] == "engine" else torch.optim.AdamW(
        model.parameters(), lr=1e-3, fused=of["optimizer"] == "fused" or None)
    times, last = [], [time.perf_counter()]

    def on_step(report):
        now = time.perf_counter()
        if report["step"] > WARM_UP:
            times.append(now - last[0])
        last[0] = now
        if report["step"] == job.config["steps"] and report["rank"] == 0 and times:
            parameters = sum(one.numel() for one in model.parameters())
            print(f"steps={len(times)} median_step_s={statistics.median(times):.6f} "
                  f"parameters={parameters}", flush=True)

    job.prepare(model, optimizer, ek.synthetic_text(4096, of["length"], 256), on_step=on_step)
    for tokens, following in job:
        job.backward(cross_entropy(model(tokens).flatten(0, 1), following.flatten()))


if __name__ == "__main__":
    main()
