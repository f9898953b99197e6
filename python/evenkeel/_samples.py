"""Samples that need no download, as datasets of tensors in memory.

Promises   the same samples on every machine, and as the C++ programs have them.
Does not   replace a dataset of your own: any map-style dataset serves.
"""
import os

import torch
from torch.utils.data import TensorDataset


def records(path, data="image", target="label"):
    """All records of a file that `keel records` made; bytes of `data` become floats in 0..1."""
    return TensorDataset(*torch.ops.evenkeel.records(os.fspath(path), data, target))


def synthetic_classes(samples=1024, shape=(32,), classes=10, seed=0):
    """Noise around one random centre for each class."""
    return TensorDataset(*torch.ops.evenkeel.synthetic_classes(seed, samples, list(shape),
                                                               classes))


def synthetic_text(samples=1024, length=64, vocabulary=64, seed=0):
    """Sequences that mostly follow a fixed random successor of each token, and the next tokens."""
    return TensorDataset(*torch.ops.evenkeel.synthetic_text(seed, samples, length, vocabulary))
