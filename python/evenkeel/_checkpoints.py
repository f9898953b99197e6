"""Checkpoints and safetensors files as state_dicts.

Promises   load() gives tensors of which every byte was verified; save() writes a file that appears
           when it is whole.
Does not   save a job's state: the job does, by its options.
"""
import os

import torch

MODEL = "model."


def load(path, only=None):
    """The model's state_dict from a checkpoint: "runs/a" or "runs/a@latest", "runs/a@1200", or the
    directory of a step. `only`: patterns for whole names, as `keel ls` shows them; then tensors
    come under these very names: load("runs/a", only="*") has the optimizer's, too."""
    patterns = [f"{MODEL}*"] if only is None else [only] if isinstance(only, str) else list(only)
    names, tensors = torch.ops.evenkeel.load_state(os.fspath(path), patterns)
    cut = len(MODEL) if only is None else 0
    return {name[cut:]: tensor for name, tensor in zip(names, tensors)}


def save(state, path, replace=False):
    """Writes a state_dict as a .safetensors file, which ek.Job(init_from=...) and others read."""
    path = os.fspath(path)
    if not path.endswith(".safetensors"):
        raise ValueError(f"'{path}' does not end with .safetensors, the format that is written")
    wrong = [name for name, value in state.items() if not isinstance(value, torch.Tensor)]
    if wrong:
        raise TypeError(f"only tensors can be saved; these are none: {', '.join(wrong)}")
    torch.ops.evenkeel.save_state(list(state), [one.detach() for one in state.values()], path,
                                  replace)
