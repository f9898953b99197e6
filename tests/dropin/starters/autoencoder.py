#!/usr/bin/env python3
"""An autoencoder as a LightningModule, trained by Lightning's own Trainer, which finds the
launcher's processes itself.
"""
import lightning
import torch
from torch import nn

import ending


class Autoencoder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 48))

    def training_step(self, batch, _):
        x, = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(x)), x)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    lightning.seed_everything(9)
    data = torch.utils.data.TensorDataset(torch.rand(256, 48))
    model = Autoencoder()
    trainer = lightning.Trainer(accelerator="cpu", strategy="ddp", devices=2, max_epochs=2,
                                logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=16, shuffle=True))
    ending.tell(model)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
