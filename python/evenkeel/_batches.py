"""A batch of whatever form a collate_fn gives it, on another device.

Does not   move what knows no device and holds nothing, or cannot be given other values (a mapping
           that is fixed): it stays as it is.
"""
import collections.abc
import copy
import dataclasses

import torch


def moved(batch, device):
    """The same structure, with its tensors on the device."""
    # Of the class: a dict may show its keys as attributes. A PackedSequence is a tuple as well.
    if callable(getattr(type(batch), "to", None)):
        return batch.to(device)
    if isinstance(batch, collections.abc.MutableMapping):
        copied = copy.copy(batch)   # what it is made from differs: see defaultdict
        for key, value in batch.items():
            copied[key] = moved(value, device)
        return copied
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(moved(one, device) for one in batch)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        copied = copy.copy(batch)
        for field in dataclasses.fields(batch):
            if hasattr(batch, field.name):   # it may be frozen, so its own __setattr__ may refuse
                object.__setattr__(copied, field.name, moved(getattr(batch, field.name), device))
        return copied
    return batch
