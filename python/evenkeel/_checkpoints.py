"""Checkpoints and safetensors files as state_dicts.

Promises   load() gives tensors of which every byte was verified, unless they are in a safetensors
           file, which has no digests; save() writes such a file, which appears when it is whole.
Does not   save a job's state: the job does, by its options.
"""
import json
import os

import torch

ENDING = ".safetensors"
MODEL = "model."
NAMES = "state_dict.names"   # of a tensor that is kept, with JSON in it


def _names(model):
    known = {id(tensor): name for items in (model.named_parameters(), model.named_buffers())
             for name, tensor in items}
    given = model.state_dict(keep_vars=True)
    others = {name: known[id(tensor)] for name, tensor in given.items()
              if known.get(id(tensor), name) != name}
    return others, sorted(set(known.values()) - set(given) - set(others.values()))


def left_out_of(model):
    """Names of the model's buffers that its state_dict() leaves out: it makes them itself."""
    buffers = {name for name, _ in model.named_buffers()}
    return [name for name in _names(model)[1] if name in buffers]


def names_of(model):
    """What the checkpoint must say so that load() gives what model.state_dict() would: names of
    tensors that have another one, too, and those that are not in it. [] if there are none."""
    others, left_out = _names(model)
    if not others and not left_out:
        return []
    text = json.dumps({"others": others, "left_out": left_out}, sort_keys=True)
    return [(NAMES, torch.tensor(list(text.encode()), dtype=torch.uint8))]


def load(path, only=None):
    """What model.state_dict() gave, from a checkpoint: "runs/a" or "runs/a@latest", "runs/a@1200",
    or the directory of a step. `only`: patterns for whole names, as `keel inspect` shows them;
    then tensors come under these very names: load("runs/a", only="*") has the optimizer's, too.
    From a .safetensors file, as save() writes it: what it has, under its own names."""
    path, kept = os.fspath(path), f"kept.{NAMES}"
    is_file = path.endswith(ENDING)
    if only is not None:
        patterns = [only] if isinstance(only, str) else list(only)
    else:
        patterns = [] if is_file else [f"{MODEL}*"]
    found = dict(zip(*torch.ops.evenkeel.load_state(path, patterns,
                                                    [kept] if only is None else [])))
    if only is not None or is_file:
        return found
    text = found.pop(kept, None)
    state = {name[len(MODEL):]: tensor for name, tensor in found.items()}
    if text is not None:
        names = json.loads(bytes(text.tolist()))
        state |= {name: state[first] for name, first in names["others"].items()}
        for name in names["left_out"]:
            del state[name]
    return state


def save(state, path, replace=False):
    """Writes a state_dict as a .safetensors file, which ek.Job(init_from=...) and others read: on
    a disk, or in a bucket (s3://bucket/model.safetensors)."""
    path = os.fspath(path)
    if not path.endswith(ENDING):
        raise ValueError(f"'{path}' does not end with {ENDING}, the format that is written")
    wrong = [name for name, value in state.items() if not isinstance(value, torch.Tensor)]
    if wrong:
        raise TypeError(f"only tensors can be saved; these are none: {', '.join(wrong)}")
    # What is conjugated or negated only when it is read is written as it reads.
    values = [one.detach().resolve_conj().resolve_neg() for one in state.values()]
    torch.ops.evenkeel.save_state(list(state), values, path, replace)
