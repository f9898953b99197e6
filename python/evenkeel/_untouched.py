"""Whether a loop leaves the parameters alone: each worker runs it for its own lanes only, so that
what changes there differs between workers.

Promises   a change that PyTorch counts, which is every one but through `.data`, is noticed. One
           through `.data` is noticed in the first FIRST_LOOKS steps, and later in one step of so
           many that looking takes at most 1 / LOOK_SHARE of the time.
Does not   notice there what leaves the sum of a parameter's bits as it was, which only chance does;
           or take memory beside a number for each parameter.
"""
import time

import torch

FIRST_LOOKS = 4
LOOK_SHARE = 1000
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


class Untouched:
    """What a model's parameters were when they were last right."""

    def __init__(self, parameters):
        self.parameters = [one for one in parameters if not one.is_inference()]
        self._looks, self._look_at = 0, 0.0
        self.note()

    def note(self):
        """Whatever was changed so far was right."""
        self._versions = [one._version for one in self.parameters]
        self._bits = None

    def look(self):
        """Before the loop has a batch. Nobody else changes them until check_bits() or note()."""
        now = time.perf_counter()
        if self._bits is None and (self._looks < FIRST_LOOKS or now >= self._look_at):
            self._bits = _bits_of(self.parameters)
            self._took = time.perf_counter() - now

    def check(self):
        if self._versions != [one._version for one in self.parameters]:
            _refuse()

    def check_bits(self):
        """check(), and whether look() saw the same, if it looked."""
        self.check()
        if self._bits is None:
            return
        now = time.perf_counter()
        if not torch.equal(self._bits, _bits_of(self.parameters)):
            _refuse()
        end = time.perf_counter()
        self._looks, self._bits = self._looks + 1, None
        self._look_at = end + LOOK_SHARE * (self._took + end - now)


def _refuse():
    raise RuntimeError("a parameter was changed in the loop, which differs between workers; do "
                       "that in before_apply or on_step, which all of them run once a step")


def _bits_of(parameters):
    """The sum of each one's bits as numbers, which wrap around: integers add up to the same in any
    order. The device may be computing still."""
    if not parameters:
        return torch.zeros(0)
    where = parameters[0].device
    return torch.stack([_words_of(one.detach()).sum().to(where) for one in parameters])


def _words_of(tensor):
    """Of 64 bits where it can be, which are summed as fast as memory is read."""
    flat = tensor.reshape(-1)
    size = flat.element_size()
    each = max(1, 8 // size)
    fits = flat.numel() % each == 0 and flat.storage_offset() % each == 0
    return flat.view(torch.int64 if fits else WORDS[size])
