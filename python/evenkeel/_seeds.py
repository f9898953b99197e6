"""Seeds the generators of random numbers that Python code of a training script draws from.

Promises   after seed_all(seed), Python's `random`, PyTorch (all devices) and numpy, where it is
           imported, draw the numbers that belong to `seed`, in whichever process. kept() puts the
           states of `random`, PyTorch's CPU and CUDA generators and numpy back when it ends.
Does not   know generators that the script made itself (torch.Generator, numpy's default_rng); put
           back those of other devices (MPS, XPU).
Threads    the generators belong to the process: other threads must not draw meanwhile.
"""
import contextlib
import random
import sys

import torch


def seed_all(seed):
    """`seed`: an integer from 0 up to 2**64 - 1."""
    random.seed(seed)
    # torch.manual_seed() keeps a note with a stack trace for each kind of device that has not
    # started, for ever: too dear for each lane.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        for generator in torch.cuda.default_generators:
            generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


@contextlib.contextmanager
def kept():
    """What runs inside may seed and draw; afterwards the script draws as if it had not."""
    python, cpu = random.getstate(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    numpy = sys.modules.get("numpy")
    numpys = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if numpys is not None:
            numpy.random.set_state(numpys)
