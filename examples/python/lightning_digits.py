"""Trains a LightningModule to tell made-up pictures apart, without Lightning's Trainer.

    pip install lightning
    keelrun --standalone --nproc-per-node 3 examples/python/lightning_digits.py
"""
import sys

import evenkeel as ek
import evenkeel.lightning     # before PyTorch computes anything
import lightning
import torch
from torch.nn import functional as F

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


DATA = ek.synthetic_classes(1280, (1, 28, 28))
TRAIN, OTHERS = (torch.utils.data.Subset(DATA, part) for part in (range(1024), range(1024, 1280)))


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.MaxPool2d(4), torch.nn.Flatten(), torch.nn.Dropout(0.1),
            torch.nn.Linear(8 * 7 * 7, 10))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guesses = self.net(x)
        self.log("val_loss", F.cross_entropy(guesses, y))
        self.log("val_accuracy", (guesses.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        return {"optimizer": optimizer, "lr_scheduler": schedule}      # stepped once in an epoch

    def train_dataloader(self):
        return torch.utils.data.DataLoader(TRAIN, batch_size=8, shuffle=True)

    def val_dataloader(self):
        return torch.utils.data.DataLoader(OTHERS, batch_size=8)


lightning.seed_everything(0)  # before the module: all workers make the same one
print(evenkeel.lightning.fit(Digits(), epochs=EPOCHS, lanes=4, monitor="val_accuracy"))
