#!/usr/bin/env python3
"""Trains a small convolutional network on handwritten digits with PyTorch's DDP.

An ordinary script: it knows PyTorch's environment variables and nothing of any launcher. It saves
after each epoch and goes on from there when it is started again, which is all that a launcher
needs to bring it through a crash.
"""
import argparse
import os
import struct

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def read_records(path):
    """Images and labels of a file that `keel records` has made: 8x8 bytes and a label each."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    count, header = struct.unpack_from("<QQ", content, 16)
    rows = torch.frombuffer(content, dtype=torch.uint8, offset=(header + 63) // 64 * 64)
    rows = rows.view(count, 8 * 8 + 4)
    return TensorDataset(rows[:, :64].reshape(-1, 1, 8, 8) / 255, rows[:, 64].long())


def make_model():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3),
                         nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 36, 10))


def accuracy(model, dataset):
    model.eval()
    with torch.no_grad():
        images, labels = dataset.tensors
        right = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def save(path, epoch, model, optimizer):
    if dist.get_rank() == 0:
        torch.save({"epoch": epoch, "model": model.state_dict(),
                    "optimizer": optimizer.state_dict()}, path + ".new")
        os.replace(path + ".new", path)  # whole or not at all
    dist.barrier()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default=f"{here}/../data", help="where the digits are")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--checkpoint", default="ddp.pt", help="where it saves and goes on from")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    train = read_records(f"{options.data}/digits-train.records")
    test = read_records(f"{options.data}/digits-test.records")
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = 0
    if os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["epoch"]
    parallel = DistributedDataParallel(model)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=32, sampler=sampler)
    for epoch in range(start, options.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(parallel(images), labels)
            loss.backward()
            optimizer.step()
        save(options.checkpoint, epoch + 1, model, optimizer)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1} of {options.epochs}: loss {loss.item():.4f}, "
                  f"accuracy {100 * accuracy(model, test):.2f}%", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
