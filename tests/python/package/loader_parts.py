"""What the tests of the package's loader share: the modules under test, datasets, and waiting.

Promises   every wait ends: a test that stands still for HANG_LIMIT seconds ends the program, with
           the stacks of all threads.
Does not   import evenkeel itself, which needs the engine's library.
"""
import contextlib
import ctypes
import dataclasses
import faulthandler
import io
import os
import random
import struct
import sys
import unittest
import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
import torch  # noqa: E402
import torch.utils.data  # noqa: E402

from without_engine import PACKAGE  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

HANG_LIMIT = 240
from evenkeel import _loader, _seeds  # noqa: E402

LoadError = _loader.LoadError
# What a script of the tests that start one begins with.
PRELUDE = f"""
import atexit, os, signal, sys, threading, types
package = types.ModuleType("evenkeel"); package.__path__ = {PACKAGE.__path__!r}
sys.modules["evenkeel"] = package
from evenkeel import _loader
"""


def bits(value):
    """Something that is equal for values that are equal bit by bit, with the same types."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized:
            return str(value)
        plain = value.detach().resolve_conj().contiguous()
        data = ctypes.string_at(plain.data_ptr(), plain.nbytes) if plain.nbytes else b""
        return "tensor", value.dtype, tuple(value.shape), value.stride(), data
    if numpy is not None and isinstance(value, numpy.ndarray):
        strides = value.strides if value.size else None
        return "array", value.dtype, value.shape, strides, value.tobytes()
    if dataclasses.is_dataclass(value):
        return type(value), bits(vars(value))
    if isinstance(value, dict):
        return type(value), [(key, bits(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [bits(one) for one in value]
    return type(value), value


class Rows(torch.utils.data.Dataset):
    """Samples that are changed by all generators of random numbers."""

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        noise = torch.randn(5) + random.random() + torch.randint(0, 9, (1,))
        if numpy is not None:
            noise = noise + float(numpy.random.rand())
        return noise + index, index


class Values:
    """A dataset whose batches are what `make` returns for the first index."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return self.make(index)

    def loader(self, workers=1):
        return _loader.Loader(self, collate_fn=lambda samples: samples[0], num_workers=workers)


class Gate:
    """Where worker processes wait for the test: each says who it is, then takes a byte."""

    def __init__(self, test):
        self.said, self._say = os.pipe()
        self._go, self.go = os.pipe()
        for number in (self.said, self._say, self._go, self.go):
            test.addCleanup(os.close, number)

    def wait(self, index):
        os.write(self._say, struct.pack("qq", os.getpid(), index))
        os.read(self._go, 1)
        return os.getpid(), index

    def arrival(self):
        return struct.unpack("qq", os.read(self.said, 16))

    def let_through(self, count=1):
        os.write(self.go, b"x" * count)


def open_files():
    names = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            names[name] = os.readlink(f"/proc/self/fd/{name}")
    return {name: place for name, place in names.items() if not place.endswith("/fd")}


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def worker_of(loader, number=0):
    return loader._pool.workers[number].pid


def wait_for_end(pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


class Said(io.StringIO):
    """Stands for stderr, and calls `then` for each line."""

    def __init__(self, then=None):
        super().__init__()
        self.then = then

    def write(self, text):
        super().write(text)
        if self.then:
            self.then()


class LoaderTest(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(HANG_LIMIT, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def closing(self, loader):
        self.addCleanup(loader.close)
        return loader

    def wait_until(self, loader, batch):
        """Until a worker has loaded it, or failed to."""
        with loader._pool.changed:
            self.assertTrue(loader._pool.changed.wait_for(lambda: loader._jobs[batch].done,
                                                          HANG_LIMIT))

    def same(self, one, other):
        ours, theirs = bits(one), bits(other)
        if ours != theirs:  # unittest would compare megabytes of text
            self.fail(f"{str(ours)[:500]}\nis not\n{str(theirs)[:500]}")

    def hearing(self, then=None):
        stream = contextlib.redirect_stderr(Said(then))
        said = stream.__enter__()
        self.addCleanup(stream.__exit__, None, None, None)
        return said
