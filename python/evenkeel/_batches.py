"""A batch of whatever form a collate_fn gives it, on another device.

Does not   move what knows no device and holds nothing: it stays as it is.
"""
import copy

import torch


def moved(batch, device):
    """The same structure, with its tensors on the device."""
    # Of the class: a dict may show its keys as attributes. A PackedSequence is a tuple as well.
    if callable(getattr(type(batch), "to", None)):
        return batch.to(device)
    if isinstance(batch, dict):
        copied = copy.copy(batch)   # what it is made from differs: see defaultdict
        for key, value in batch.items():
            copied[key] = moved(value, device)
        return copied
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(moved(one, device) for one in batch)
    return batch
