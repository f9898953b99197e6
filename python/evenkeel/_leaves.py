"""Leaves: the numbers and tensors that a Python object holds, mirrored in named tensors.

The engine knows a job's state as a list of named tensors, which it sends, saves and replaces in
place. A scheduler's last_epoch or a group's learning rate is no tensor: store() copies such
numbers into tensors after a step, load() copies them back after the engine has replaced these.

Promises   load() gives the object the very numbers that store() saw, here or on another worker:
           same value, same bits, same type of None, bool, int and float. A number may change
           among these four types from step to step, as T_cur of CosineAnnealingWarmRestarts does.
           load() reads the object once more and raises where it did not take what it was given.
           The list of tensors is the same from the first call of tensors() to the last.
Does not   follow a structure that changes: the keys and lengths of dicts, lists and tuples, and
           the text of strings, are those of the first read. Another one is a ValueError that
           names the place. Does not mirror complex numbers, NumPy's numbers and arrays, functions
           and objects of other classes: a TypeError names the place. A float of a subclass, as
           NumPy's float64, comes back as a plain float.
Tensors    `{name}.floats` and `{name}.ints` have one place for each number, `{name}.kinds` says
           which of the two holds it (KIND_OF), and names() says which number it is. Three tensors
           are cheaper than one for each number: struct packs all of them in a microsecond, while
           one Tensor.fill_ takes half of one.
"""
import collections
import copy
import struct

import torch

NONE, BOOL, INT, FLOAT = range(4)  # what `{name}.kinds` holds
KIND_OF = {type(None): NONE, bool: BOOL, int: INT, float: FLOAT}
# A place in the structure: one of these, and for a branch its (key, node) pairs.
BRANCH, NUMBER, FIXED, TENSOR, LIVE, ELSEWHERE = range(6)
DEPTH_MAX = 64
EARLIER = ("Every worker lists its tensors before the first step, so this must have its final form "
           "when it is registered.")


class _Changed(Exception):
    """The object has another structure than at first; _explain() finds the words."""


class _Node:
    __slots__ = ("kind", "path", "items", "fixed")

    def __init__(self, kind, path, items=(), fixed=None):
        self.kind, self.path, self.items, self.fixed = kind, path, items, fixed


class _Numbers:
    """None, bools, ints and floats of a fixed count, kept exactly in three tensors."""

    def __init__(self, name, count):
        self._name = name
        self._floats, self._ints = struct.Struct(f"={count}d"), struct.Struct(f"={count}q")
        self._bytes = [bytearray(8 * count), bytearray(8 * count), bytearray(count)]
        types = zip(("floats", "ints", "kinds"), self._bytes,
                    (torch.float64, torch.int64, torch.uint8))
        # The tensors share the memory of the bytearrays: packing into these needs no call of torch.
        self.tensors = [(name, torch.frombuffer(data, dtype=dtype))
                        for name, data, dtype in types if count]

    def packed(self, values):
        """The bytes of the three tensors. KeyError: a value of another type; struct.error: an int
        of more than 64 bits."""
        try:
            kinds = [KIND_OF[type(value)] for value in values]
        except KeyError:
            values = [float(value) if isinstance(value, float) else value for value in values]
            kinds = [KIND_OF[type(value)] for value in values]
        floats = [value if kind == FLOAT else 0.0 for value, kind in zip(values, kinds)]
        ints = [value if kind in (BOOL, INT) else 0 for value, kind in zip(values, kinds)]
        return self._floats.pack(*floats), self._ints.pack(*ints), bytes(kinds)

    def put(self, packed):
        for data, new in zip(self._bytes, packed):
            data[:] = new

    def holds(self, packed):
        return all(data == other for data, other in zip(self._bytes, packed))

    def values(self):
        kinds = self._bytes[2]
        if any(kind > FLOAT for kind in kinds):
            raise ValueError(f"{self._name}.kinds holds {max(kinds)}, and the highest kind is "
                             f"{FLOAT}: the tensor is damaged, or it belongs to something else")
        return [(None, bool(whole), whole, real)[kind] for kind, whole, real in
                zip(kinds, self._ints.unpack(self._bytes[1]), self._floats.unpack(self._bytes[0]))]


def _same_memory(one, other):
    return (one.data_ptr() == other.data_ptr() and one.shape == other.shape
            and one.stride() == other.stride() and one.dtype == other.dtype
            and one.device == other.device)


def same_bits(one, other):
    one, other = (tensor.detach().reshape(-1).contiguous() for tensor in (one, other))
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def same_kind(one, other):
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device


def _gather(node, value, numbers, tensors):
    """Appends the numbers and tensors of a structure in its order. It is called after every step:
    it only notices that the structure has changed, and leaves the words to _explain()."""
    if node.kind == BRANCH:
        if len(value) != len(node.items):
            raise _Changed
        for key, child in node.items:
            if child.kind == NUMBER:
                numbers.append(value[key])
            else:
                _gather(child, value[key], numbers, tensors)
    elif node.kind == NUMBER:
        numbers.append(value)
    elif node.kind == FIXED:
        if type(value) is not type(node.fixed) or value != node.fixed:
            raise _Changed
    elif isinstance(value, torch.Tensor):
        tensors.append(value)
    else:
        raise _Changed


def _rebuilt(node, value, numbers, tensors):
    """A structure like `value` with the next numbers and tensors in it; containers are new ones,
    since an object may go on with the ones that it is given."""
    if node.kind == NUMBER:
        return next(numbers)
    if node.kind in (TENSOR, LIVE, ELSEWHERE):
        return next(tensors)
    if node.kind == FIXED:
        return value
    new = [(key, _rebuilt(child, value[key], numbers, tensors)) for key, child in node.items]
    if isinstance(value, dict):
        container = copy.copy(value)  # a Counter or an OrderedDict stays one
        for key, item in new:
            container[key] = item     # update() of a Counter would add
        return container
    items = [item for _, item in new]
    if hasattr(value, "_fields"):
        return type(value)(*items)  # a named tuple
    return type(value)(items)


def _explain(name, node, value):
    """Raises with the first place whose structure has changed, and with what it was and is."""
    place = f"{name}.{node.path}" if node.path else name
    if node.kind == BRANCH:
        if not isinstance(value, (dict, list, tuple)):
            raise ValueError(f"{place} was a container and is now of the type {_type(value)}. "
                             f"{EARLIER}")
        old = [key for key, _ in node.items]
        new = list(value) if isinstance(value, dict) else list(range(len(value)))
        if set(old) != set(new):
            raise ValueError(f"{place} had the {_entries(value, old)} when it was registered, and "
                             f"has the {_entries(value, new)} now. {EARLIER}")
        for key, child in node.items:
            _explain(name, child, value[key])
    elif node.kind == NUMBER:
        if isinstance(value, int) and not -2**63 <= value < 2**63:
            raise ValueError(f"{place} is {value}, and whole numbers are kept in 64 bits")
        if type(value) not in KIND_OF and not isinstance(value, float):
            raise ValueError(f"{place} was a number or None and is now of the type "
                             f"{_type(value)}. {EARLIER}")
    elif node.kind == FIXED:
        if type(value) is not type(node.fixed) or value != node.fixed:
            raise ValueError(f"{place} was {node.fixed!r} when it was registered and is {value!r} "
                             "now. Strings cannot be mirrored in tensors: keep a number instead.")
    elif not isinstance(value, torch.Tensor):
        raise ValueError(f"{place} was a tensor and is now of the type {_type(value)}. {EARLIER}")


def _type(value):
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _entries(value, keys):
    if isinstance(value, dict):
        return "keys [" + ", ".join(map(str, keys)) + "]"
    return f"length {len(keys)}"


class Leaves:
    """The leaves of what `read()` gives, a nest of dicts, lists and tuples; `write(nest)` hands a
    nest of the same form back to the object.

    live    True: the object's tensors are listed themselves, so that none is copied. The object
            must update them in place, as a Module does; one that is replaced is a ValueError.
            False: a copy of each is kept, which is right for every object. Or a function that
            says for each tensor which of the two it is.
    known   tensors (or their data_ptr) that are listed elsewhere, as the model's parameters: what
            shares memory with one is left out.
    """

    def __init__(self, name, read, write, known=(), live=False):
        self.name = name
        self._read, self._write = read, write
        self._is_live = live if callable(live) else lambda _: live
        known = {item if isinstance(item, int) else item.data_ptr() for item in known} - {0}
        self._paths, self._tensors, self._tensor_nodes = [], [], []
        first = read()
        self._root = self._plan(first, (), known)
        self._numbers = _Numbers(name, len(self._paths))
        self._listed = [(f"{name}.{part}", tensor) for part, tensor in self._numbers.tensors]
        self._listed += [(f"{name}.{node.path}" if node.path else name, tensor) for node, tensor
                         in zip(self._tensor_nodes, self._tensors)
                         if node.kind in (TENSOR, LIVE)]
        taken = set()
        for listed, _ in self._listed:
            if listed in taken:
                raise ValueError(f"two tensors have the name {listed}: rename one of the entries")
            taken.add(listed)
        self.store()

    def tensors(self):
        """[(name, tensor)]: what the engine is to list, in the order of the structure."""
        return list(self._listed)

    def is_empty(self):
        """Whether there is no number or tensor, also none that is listed elsewhere."""
        return not self._paths and not self._tensors

    def names(self):
        """The path of each number, by its index in `{name}.floats`, `.ints` and `.kinds`."""
        return list(self._paths)

    def store(self):
        """Copies the object's numbers and tensors into those that are listed."""
        packed, tensors = self._gathered(self._read())
        self._numbers.put(packed)
        with torch.no_grad():
            for node, mirror, tensor in zip(self._tensor_nodes, self._tensors, tensors):
                if node.kind == TENSOR:
                    mirror.copy_(tensor)

    def has_same_numbers(self):
        """Whether the object's numbers are those that the listed tensors hold."""
        return self._numbers.holds(self._gathered(self._read())[0])

    def load(self):
        """Gives the object what the listed tensors hold."""
        value = self._read()
        _, current = self._gathered(value)
        tensors = [mirror.clone() if node.kind == TENSOR else tensor
                   for node, mirror, tensor in zip(self._tensor_nodes, self._tensors, current)]
        numbers = iter(self._numbers.values())
        self._write(_rebuilt(self._root, value, numbers, iter(tensors)))
        self._check_arrival()

    def _plan(self, value, path, known):
        place = ".".join(map(str, path))
        if len(path) > DEPTH_MAX:
            raise TypeError(f"{self.name}.{place} is nested deeper than {DEPTH_MAX} levels: does "
                            "an object contain itself?")
        if type(value) in KIND_OF or isinstance(value, float):
            self._paths.append(place)
            return _Node(NUMBER, place)
        if isinstance(value, torch.Tensor):
            return self._plan_tensor(value, place, known)
        if isinstance(value, (str, bytes, torch.dtype, torch.device)):
            return _Node(FIXED, place, fixed=value)
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, (str, int, float)):
                    raise TypeError(f"{self.name}.{place} has a key of the type {_type(key)}: "
                                    "keys must be strings or numbers")
            keys = list(value)
        elif isinstance(value, (list, tuple)):
            keys = range(len(value))
        else:
            raise TypeError(
                f"{self.name}.{place} is of the type {_type(value)}, which cannot be mirrored in a "
                "tensor. Make it a float, int, bool, None, string or tensor, or a dict, list or "
                "tuple of these, or leave it out of the state_dict().")
        items = [(key, self._plan(value[key], path + (key,), known)) for key in keys]
        return _Node(BRANCH, place, items)

    def _plan_tensor(self, tensor, place, known):
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
            raise TypeError(f"{self.name}.{place} is a tensor that is sparse, quantized or without "
                            "memory: only dense ones can be mirrored")
        mirror = tensor.detach()
        if tensor.data_ptr() in known:
            node = _Node(ELSEWHERE, place)
        elif self._is_live(tensor):
            node = _Node(LIVE, place)
            known |= {tensor.data_ptr()} - {0}  # one that occurs twice is listed once
        else:
            node = _Node(TENSOR, place)
            mirror = mirror.clone()
        self._tensor_nodes.append(node)
        self._tensors.append(mirror)
        return node

    def _gathered(self, value):
        """(packed numbers, tensors) of a structure that is still the planned one."""
        numbers, tensors = [], []
        try:
            _gather(self._root, value, numbers, tensors)
            packed = self._numbers.packed(numbers)
        except (_Changed, KeyError, IndexError, TypeError, struct.error):
            _explain(self.name, self._root, value)
            raise
        for node, mirror, tensor in zip(self._tensor_nodes, self._tensors, tensors):
            direct = node.kind != TENSOR
            if direct and _same_memory(mirror, tensor):
                continue
            if not same_kind(mirror, tensor):
                raise ValueError(
                    f"{self.name}.{node.path} was a tensor {tuple(mirror.shape)} {mirror.dtype} "
                    f"on {mirror.device} and is one {tuple(tensor.shape)} {tensor.dtype} on "
                    f"{tensor.device} now. {EARLIER}")
            if direct:
                raise ValueError(
                    f"{self.name}.{node.path} is another tensor than at first, so the listed one "
                    "is no longer its state. Write into the first one (copy_, lerp_), or register "
                    "the object with live=False and without the tensor in known, which copies it.")
        return packed, tensors

    def _check_arrival(self):
        packed, tensors = self._gathered(self._read())
        if not self._numbers.holds(packed):
            got, given = _Numbers(self.name, len(self._paths)), self._numbers.values()
            got.put(packed)
            path, old, new = next((path, old, new) for path, old, new in
                                  zip(self._paths, given, got.values())
                                  if repr(old) != repr(new) or type(old) is not type(new))
            raise ValueError(f"{self.name}.{path} is {new!r} after load_state_dict() was given "
                             f"{old!r}. Its state_dict() must hold what load_state_dict() sets.")
        for node, mirror, tensor in zip(self._tensor_nodes, self._tensors, tensors):
            if node.kind == TENSOR and not same_bits(mirror, tensor):
                raise ValueError(f"{self.name}.{node.path} has other values after "
                                 "load_state_dict() than it was given")


def of_object(name, thing, known=(), live=None):
    """The leaves of an object with state_dict() and load_state_dict(): a scheduler, an averaged
    model, a scaler. A Module's parameters and buffers are listed themselves, all other tensors are
    copied, unless `live` says otherwise."""
    if isinstance(thing, torch.optim.Optimizer):
        raise TypeError(f"{name} is an optimizer: give it to job.prepare(model, optimizer, ...), "
                        "which keeps its state")
    for method in ("state_dict", "load_state_dict"):
        if not callable(getattr(thing, method, None)):
            raise TypeError(f"{name} is of the type {_type(thing)}, which has no {method}(): give "
                            "the class state_dict() and load_state_dict()")
    is_module = isinstance(thing, torch.nn.Module)
    if live is None:
        live = _is_own(thing) if is_module else False
    leaves = Leaves(name, thing.state_dict, thing.load_state_dict, known, live)
    if is_module and leaves.is_empty():
        _refuse_lost(name, thing)
    return leaves


def _is_own(module):
    """Tells a parameter or buffer of the module from what else its state_dict() gives, as a metric
    of torchmetrics does copies of tensors that it replaces."""
    own = {tensor.data_ptr() for tensor in (*module.parameters(), *module.buffers())
           if tensor.layout == torch.strided}
    return lambda tensor: tensor.data_ptr() in own


def _refuse_lost(name, thing):
    """A Module with tensors of which its state_dict() has none. An empty one of another object may
    be right, as that of a GradScaler that is not enabled; if it gets entries later, store() raises.
    """
    for prefix, module in thing.named_modules():
        states = getattr(module, "metric_state", {})   # of torchmetrics; some are empty lists
        kept = [key for key, value in (*module._parameters.items(), *module._buffers.items(),
                                       *vars(module).items())
                if isinstance(value, torch.Tensor)]
        for key in (*kept, *(states if isinstance(states, dict) else ())):
            place = f"{prefix}.{key}" if prefix else key
            raise TypeError(f"{name} is of the type {_type(thing)}, whose state_dict() has no "
                            f"tensor and no number, so that its '{place}' would be lost at a "
                            "resume: call persistent(True) of a metric before job.prepare(), "
                            "register a buffer with persistent=True, or do not register what need "
                            "not go on")


def keys_to_come(optimizer):
    """By the index of a group, the keys of numbers that its first step adds: many classes count
    their steps in a key "step" that is not there before. materialize() notes them here, and
    of_groups() mirrors them."""
    return vars(optimizer).setdefault("_evenkeel_keys_to_come", collections.defaultdict(set))


def of_groups(name, optimizer):
    """The leaves of an optimizer's parameter groups: the settings that are numbers, or that hold
    some. What is neither, as a function, is the script's, and stays as it is. Call it after
    materialize(), and after the schedulers are made."""
    def is_plain(value):
        return (type(value) in (*KIND_OF, str)
                or isinstance(value, (float, torch.Tensor, dict, list, tuple)))

    to_come = [sorted(keys_to_come(optimizer)[index])
               for index in range(len(optimizer.param_groups))]
    left_out = [{"params", "param_names", *keys,
                 *(key for key, value in group.items() if not is_plain(value))}
                for group, keys in zip(optimizer.param_groups, to_come)]

    def read():
        groups = optimizer.param_groups
        if len(groups) != len(left_out):
            raise ValueError(f"{name}: the optimizer had {len(left_out)} parameter groups when it "
                             f"was registered, and has {len(groups)} now. {EARLIER}")
        return [{key: value for key, value in group.items() if key not in left}
                | {key: group.get(key) for key in keys}   # None: not there yet
                for group, left, keys in zip(groups, left_out, to_come)]

    def write(groups):
        for group, new, keys in zip(optimizer.param_groups, groups, to_come):
            group.update(new)
            for key in keys:
                if new[key] is None:
                    del group[key]

    # A tensor in a group is one that steps read and schedulers fill: it must stay the same one.
    return Leaves(name, read, write, live=True)
