"""Whether a loop leaves the parameters alone: each worker runs it for its own lanes only, so that
what changes there differs between workers. And whether the model keeps the tensors that it has, in
whichever modules.

Promises   a change that PyTorch counts, which is every one but through `.data`, is noticed. One
           through `.data` is noticed in the first FIRST_LOOKS steps, and later in one step of so
           many that looking takes at most 1 / LOOK_SHARE of the time.
Does not   notice there what leaves the sum of a parameter's bits as it was, which only chance does;
           or take memory beside a number for each parameter.
"""
import time
from operator import is_

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


class Held:
    """The tensors that a model had when it was prepared, which are those that the engine knows, and
    which of them are trained. Buffers that are not persistent may come later: a model makes them
    itself. So may modules that bring no other tensor, and those that a model has may get another
    place in it, as within a wrapper."""

    def __init__(self, model):
        self._model, self._known = model, {}   # by their id, since modules may share one
        for prefix, module in model.named_modules():
            for table in (module._parameters, module._buffers):
                for key, tensor in table.items():
                    if tensor is not None:
                        must_stay = not _may_come(module, table, key)
                        name, _, is_needed = self._known.get(
                            id(tensor), (_joined(prefix, key), tensor, False))
                        self._known[id(tensor)] = name, tensor, is_needed or must_stay
        self._note()

    def check(self):
        for table, key, name, tensor, is_trained in self._tensors:
            if table.get(key) is not tensor:
                raise RuntimeError(f"the model's '{name}' is another tensor than the one that the "
                                   "job keeps; write into it with copy_() in place of assigning")
            if tensor.requires_grad != is_trained:
                raise RuntimeError(
                    f"requires_grad of '{name}' was changed: what a job trains is settled by "
                    "job.prepare(), on every worker, also on one that joins later. Freeze before "
                    "it, and let a script of its own go on from the weights with other parameters")
        for table, key, name in self._absent:
            if table.get(key) is not None:
                _refuse_late(name)
        for prefix, module, table, keys in self._tables:
            if len(table) != len(keys):
                for key in table.keys() - keys:
                    if table[key] is not None and not _may_come(module, table, key):
                        _refuse_late(_joined(prefix, key))
        for table, children in self._children:
            if len(table) != len(children) or (
                    children and not all(map(is_, table.values(), children))):
                self._check_modules()
                self._note()
                return

    def _note(self):
        """Where the known tensors are now, and where others may come."""
        self._tensors, self._absent, self._tables, self._children = [], [], [], []
        for prefix, module in self._model.named_modules():
            self._children.append((module._modules, tuple(module._modules.values())))
            for table in (module._parameters, module._buffers):
                self._tables.append((prefix, module, table, set(table)))
                for key, tensor in table.items():
                    name = _joined(prefix, key)
                    if tensor is not None and id(tensor) in self._known:
                        self._tensors.append((table, key, name, tensor, tensor.requires_grad))
                    elif tensor is None and not _may_come(module, table, key):
                        self._absent.append((table, key, name))

    def _check_modules(self):
        """Whether the model has the known tensors and no others, now that it has other modules."""
        held = {id(module) for _, module, _, _ in self._tables}
        found, new = set(), None
        for prefix, module in self._model.named_modules():
            is_new = id(module) not in held
            if is_new and (new is None or not prefix.startswith(f"{new}.")):
                new = prefix   # the outermost one: those within it come right behind it
            for table in (module._parameters, module._buffers):
                for key, tensor in table.items():
                    found.add(id(tensor))
                    name = _joined(prefix, key)
                    if not (tensor is None or id(tensor) in self._known
                            or _may_come(module, table, key)):
                        _refuse_module(new, name) if is_new else _refuse_late(name)
        for identity, (name, _, is_needed) in self._known.items():
            if is_needed and identity not in found:
                raise RuntimeError(f"the module that had the model's '{name}' was removed or "
                                   "replaced after the job was prepared, and a worker that joins "
                                   "later, or resumes, has it; do that before job.prepare(), or "
                                   "let forward() leave it out")


def _joined(prefix, key):
    return f"{prefix}.{key}" if prefix else key


def _may_come(module, table, key):
    return table is module._buffers and key in module._non_persistent_buffers_set


def _refuse_late(name):
    raise RuntimeError(f"the model's '{name}' is a tensor that was not there when the job was "
                       "prepared, so that it would neither be kept nor be the same on all workers; "
                       "set it before job.prepare(), or, if it is a buffer that the model can make "
                       "again at any time, register it with persistent=False")


def _refuse_module(name, tensor):
    raise RuntimeError(f"the model's '{name}' is a module that was not there when the job was "
                       f"prepared, so that its '{tensor}' would neither be trained nor kept, nor "
                       "be the same on all workers; make it before job.prepare(), and write new "
                       "values into the module that is there, by load_state_dict() in before_apply "
                       "or on_step")


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
