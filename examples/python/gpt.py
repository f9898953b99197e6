"""A small GPT over the bytes of a text, with a warm-up of the rate and an average of the weights.

    python examples/python/gpt.py --steps 200 --checkpoint-dir runs/gpt --save-every 50
"""
import os

import evenkeel as ek   # before PyTorch computes anything
import torch
from torch import nn
from torch.nn import functional as F

TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "shakespeare.txt")

job = ek.Job.from_args(steps=200, lanes=4, lane_batch=8, clip_norm=1.0,
                       settings={"width": 64, "heads": 4, "layers": 2, "context": 64})
settings = job.settings


class Windows(torch.utils.data.Dataset):
    """Every window of so many bytes, and the byte that follows each of them."""

    def __init__(self, path, context):
        with open(path, "rb") as file:
            self.text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
        self.context = context

    def __len__(self):
        return len(self.text) - self.context

    def __getitem__(self, start):
        window = self.text[start:start + self.context + 1]
        return {"seen": window[:-1], "next": window[1:]}


class Gpt(nn.Module):
    def __init__(self, width, heads, layers, context):
        super().__init__()
        self.byte, self.place = nn.Embedding(256, width), nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1,
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 256))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(context),
                             persistent=False)

    def forward(self, seen):
        x = self.byte(seen) + self.place(torch.arange(seen.shape[1]))
        return self.head(self.body(x, mask=self.mask, is_causal=True))


model = Gpt(**settings)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=job.config["steps"])
average = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))

job.register("average", average)                  # it goes on exactly, too
job.prepare(model, optimizer, Windows(TEXT, settings["context"]), schedulers=[warm_up, decay],
            on_step=lambda report: average.update_parameters(model))
for batch in job:
    job.backward(F.cross_entropy(model(batch["seen"]).flatten(0, 1), batch["next"].flatten()))
print(job.result)
