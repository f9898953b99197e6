"""An optimizer's state as tensors that exist before the first step, and its settings as a text.

torch's optimizers make a parameter's state in the first step that has a gradient for it. The engine
lists all state before that, on every worker alike: materialize() makes it exist at once.

Promises   training that goes on from a materialized optimizer is bit for bit that of a fresh one,
           parameters and state, whatever gradients come. Parameters, gradients, groups, step hooks,
           schedulers, torch's random generators and Python's are as they were. State that a
           parameter has already is not touched. An optimizer for which this cannot be had is a
           TypeError that says why, and keeps its parameters and state. Few of these are known by
           name: _check_steps() finds the others by making steps, for any class.
Does not   serve sparse gradients. Does not make the state of a parameter whose requires_grad is
           set later: check_state() finds state that appeared, or was replaced, since it was listed.
           Schedulers must be made first, since some change the settings that decide which state
           there is. ASGD and Rprop make state out of the rate: a parameter whose first gradient
           comes after the rate has changed begins with the first rate, not with the later one.
           The hooks that some SGD needs (_FirstStep) are lost by copy.deepcopy() and pickle.
Memory     the trial goes through the parameters in portions of CHUNK_BYTES: where training itself
           just fits, a second copy of all parameters, gradients and state does not.
"""
import contextlib
from collections.abc import MutableMapping
import inspect
import random
import warnings

import torch
from torch.optim import optimizer as torch_optimizer

from . import _leaves

CHUNK_BYTES = 64 << 20
CHECK_STEPS = 3
CHECK_NUMEL_MAX = 1 << 22   # the check also steps the largest parameter that is not above this
FIRST_STEP = "evenkeel_first_step"
HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks",
         "_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")
SCHEDULED = ("lr", "initial_lr")   # state, which of_groups() mirrors: not part of a description


def materialize(optimizer):
    """Makes the state of all parameters that require gradients exist, as if nothing was trained."""
    _refuse_by_name(optimizer)
    missing = [parameter for parameter in _parameters(optimizer) if parameter.requires_grad
               and all(value is None for value in optimizer.state.get(parameter, {}).values())]
    if not missing:
        _serve_first_steps(optimizer)   # of a state that was restored
        return
    try:
        with _undisturbed(optimizer) as rewind:
            samples = _samples(optimizer, missing)
            with _stepped(optimizer, samples, _random_gradients(samples), rewind):
                fresh = _outcome(optimizer, samples)
            try:
                for chunk in _chunks(missing):
                    _make_state(optimizer, chunk, rewind)
                _correct_sgd(optimizer, missing)
                _check_steps(optimizer, samples, fresh, rewind)
            except Exception as error:
                if isinstance(error, (_Refused, MemoryError, torch.OutOfMemoryError)):
                    raise
                _refuse(optimizer, "fails in a step with gradients of zero, or with its state made "
                                   f"beforehand ({type(error).__name__}: {error}).")
    except BaseException:
        for parameter in missing:
            optimizer.state.pop(parameter, None)
        raise


def refuse_rates(optimizer):
    """Rates that are no numbers: a job tells each step's rate, and looks whether it changes."""
    for number, group in enumerate(optimizer.param_groups):
        try:
            float(group["lr"])
        except (KeyError, TypeError, ValueError, RuntimeError):
            told = f"lr={group['lr']!r}" if "lr" in group else "no lr"
            raise TypeError(f"group {number} of {_class_name(optimizer)} has {told}, and a job "
                            "takes an optimizer whose rate is a number: give it one. (An Adafactor "
                            "that finds its rate itself takes one with relative_step=False.)"
                            ) from None


def state_tensors(optimizer, names):
    """[(name, tensor)] of all state, by group, parameter and key; `names` has each parameter's."""
    listed, seen = [], set()
    for name, parameter in _named(optimizer, names):
        for path, value in _flat(optimizer.state.get(parameter, {}), name):
            if isinstance(value, torch.Tensor) and id(value) not in seen:
                seen.add(id(value))   # one tensor may be the state of several parameters
                listed.append((path, value))
    return listed


def state_numbers(name, optimizer, names):
    """The Leaves of all state that is not tensors. torch's own classes have none, and then nothing
    is listed; classes of others often count their steps in an int."""
    def numbers_of(state):
        return [key for key, value in state.items() if not isinstance(value, torch.Tensor)]

    kept = [(owner, key, numbers_of(optimizer.state[key])) for owner, key
            in _named(optimizer, names) if numbers_of(optimizer.state.get(key, {}))]

    def read():
        return {owner: {item: optimizer.state[key][item] for item in items
                        if item in optimizer.state[key]} for owner, key, items in kept}

    def write(states):
        for owner, key, _ in kept:
            optimizer.state[key].update(states[owner])

    known = [tensor for _, tensor in state_tensors(optimizer, names)]
    return _leaves.Leaves(name, read, write, known)


def check_state(optimizer, names, listed):
    """Raises where the optimizer's state is no longer the tensors that state_tensors() listed."""
    now, before = dict(state_tensors(optimizer, names)), dict(listed)
    for name in [*now, *before]:
        if now.get(name) is not before.get(name):
            what = "was removed or replaced" if name in before else "appeared"
            raise ValueError(f"the optimizer's state {name} {what} after the state was listed: set "
                             "requires_grad and groups, and call load_state_dict(), before that")


def describe(optimizer):
    """A line that differs where the class or the settings do, and is the same on every worker."""
    groups = [f"[{_settings(group)} params={len(group['params'])}]"
              for group in optimizer.param_groups]
    return f"{_class_name(optimizer)} groups={len(groups)} {' '.join(groups)}"


def _settings(group):
    left_out = (*SCHEDULED, "params", "param_names")
    return " ".join(f"{key}={_text(group[key])}" for key in sorted(group) if key not in left_out)


def _text(value):
    """Like repr(), without what differs between processes: addresses, devices, sets' order."""
    if isinstance(value, torch.Tensor):
        return f"tensor({value.dtype}, {value.tolist()})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_text, value)) + ")"
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        return str(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"<{named.__module__}.{named.__qualname__}>"


def _class_name(optimizer):
    kind = type(optimizer)
    if getattr(torch.optim, kind.__name__, None) is kind:
        return f"torch.optim.{kind.__name__}"   # not the file in torch.optim, which may change
    return f"{kind.__module__}.{kind.__qualname__}"


def _parameters(optimizer):
    return list({id(parameter): parameter for group in optimizer.param_groups
                 for parameter in group["params"]}.values())


def _named(optimizer, names):
    """[(name, parameter)], in the order of the groups."""
    parameters = _parameters(optimizer)
    for parameter in parameters:
        if parameter not in names:
            raise ValueError(f"the optimizer has a parameter {tuple(parameter.shape)} "
                             f"{parameter.dtype} that has no name: it must belong to the model, "
                             "whose parameters are listed by name")
    return [(names[parameter], parameter) for parameter in parameters]


def _flat(value, path, seen=()):
    """(path, leaf) of a nest of dicts, lists and tuples; keys in the order of their text."""
    if id(value) in seen:
        return
    if isinstance(value, dict):
        items = [(str(key) if isinstance(key, (str, int)) else str(id(key)), item)
                 for key, item in value.items()]
        items.sort(key=lambda item: item[0])
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        yield path, value
        return
    for key, item in items:
        yield from _flat(item, f"{path}.{key}", (*seen, id(value)))


def _copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _like(value, map(_copied, value))
    return value


def _like(value, items):
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _put_back(value, old):
    """`value` with the contents that _copied() gave: in place as far as its form is the same."""
    if isinstance(old, torch.Tensor) and isinstance(value, torch.Tensor):
        if value.shape == old.shape and value.dtype == old.dtype:
            with torch.no_grad():
                value.copy_(old)
            return value
    elif isinstance(old, dict) and isinstance(value, dict) and value.keys() == old.keys():
        for key in old:
            value[key] = _put_back(value[key], old[key])
        return value
    elif isinstance(old, list) and isinstance(value, list) and len(value) == len(old):
        value[:] = map(_put_back, value, old)
        return value
    elif isinstance(old, tuple) and isinstance(value, tuple) and len(value) == len(old):
        return _like(value, map(_put_back, value, old))
    return old


def _same(one, other):
    """Whether two leaves are the same to the bit."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _leaves.same_kind(one, other) and _leaves.same_bits(one, other)
    return type(one) is type(other) and repr(one) == repr(other)


def _refuse_by_name(optimizer):
    name = _class_name(optimizer)
    if isinstance(optimizer, torch.optim.LBFGS):
        raise TypeError(f"{name} evaluates the loss several times in a step, and keeps lists that "
                        "grow. Take an optimizer that makes one update of one gradient.")
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise TypeError(f"{name} takes sparse gradients, which are not exchanged between workers. "
                        "Take Adam, and an Embedding with sparse=False.")
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise TypeError(f"{name} has differentiable=True: its steps belong to the graph, so that "
                        "its state cannot be replaced. Take differentiable=False.")
    try:
        inspect.signature(type(optimizer).step).bind(optimizer)
    except TypeError as error:
        raise TypeError(f"{name}.step() cannot be called without arguments ({error}): the engine "
                        "computes gradients only once a step. Take another optimizer.") from None


class _Refused(TypeError):
    pass


def _refuse(optimizer, why):
    raise _Refused(f"{_class_name(optimizer)} {why} Its state must exist before the first step, "
                   "in tensors and numbers that stay. Take another class, or change this one.")


@contextlib.contextmanager
def _undisturbed(optimizer):
    """Silences hooks and warnings, and puts gradients and random generators back at the end.
    Gives the function that sets the generators to where they are now."""
    hooks = [vars(owner)[name] for owner in (optimizer, torch_optimizer)
             for name in HOOKS if name in vars(owner)]
    kept_hooks = [dict(found) for found in hooks]
    gradients = [(parameter, parameter.grad) for parameter in _parameters(optimizer)]
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    devices = {parameter.device for parameter, _ in gradients if parameter.is_cuda}
    cuda_states = [(torch.cuda.get_rng_state(device), device) for device in devices]

    def rewind():
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        for state, device in cuda_states:
            torch.cuda.set_rng_state(state, device)

    try:
        for found in hooks:
            found.clear()
        for parameter, _ in gradients:
            parameter.grad = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield rewind
    finally:
        rewind()
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for found, kept in zip(hooks, kept_hooks):
            found.update(kept)


@contextlib.contextmanager
def _stepped(optimizer, parameters, gradients, rewind):
    """Inside, these parameters have made a step with each list of gradients; then they and the
    groups are put back, but not their state."""
    before = [parameter.detach().clone() for parameter in parameters]
    groups = [(group, dict(group), _copied({key: value for key, value in group.items()
                                            if key != "params"}))
              for group in optimizer.param_groups]
    try:
        rewind()
        for step in gradients:
            for parameter, gradient in zip(parameters, step):
                parameter.grad = gradient
            # The class's step(): an optimizer's own is wrapped by schedulers, which warn unless
            # the first call of it comes before their first step.
            type(optimizer).step(optimizer)
        for index, (group, entries, _) in enumerate(groups):
            for key in sorted(set(group) ^ set(entries)):
                if type(group.get(key)) not in (bool, int, float):
                    _refuse(optimizer, f"adds or removes {key!r} in its groups in a step.")
                _leaves.keys_to_come(optimizer)[index].add(key)
        yield
    finally:
        for parameter, old in zip(parameters, before):
            _put_back(parameter.detach(), old)
            parameter.grad = None
        for group, entries, old in groups:
            group.clear()
            group.update({key: entries[key] if key == "params" else
                          _put_back(entries[key], old[key]) for key in entries})


class _First(dict):
    """A parameter's state that keeps the value that each entry had when it was first set."""

    def __init__(self):
        self.first = {}

    def __setitem__(self, key, value):
        if key not in self.first:
            self.first[key] = _copied(value)
        super().__setitem__(key, value)

    setdefault, update = MutableMapping.setdefault, MutableMapping.update   # by __setitem__


def _make_state(optimizer, parameters, rewind):
    for parameter in parameters:
        optimizer.state[parameter] = _First()
    with _stepped(optimizer, parameters, [list(map(torch.zeros_like, parameters))], rewind):
        pass
    for parameter in parameters:
        state = optimizer.state.pop(parameter)
        if not isinstance(state, _First):
            _refuse(optimizer, "puts another dict in place of a parameter's state.")
        if state:
            optimizer.state[parameter] = {key: _put_back(value, state.first.get(key, value))
                                          for key, value in state.items()}


def _chunks(parameters):
    """Lists of parameters of up to CHUNK_BYTES each, or of one that is larger."""
    chunk, size = [], 0
    for parameter in parameters:
        if chunk and size + parameter.nbytes > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(parameter)
        size += parameter.nbytes
    yield chunk


def _samples(optimizer, parameters):
    """The smallest parameter and a large one of each kind; classes treat kinds differently."""
    kinds, wanted = {}, set(map(id, parameters))
    for group in optimizer.param_groups:
        settings = _settings(group)
        for parameter in group["params"]:
            if id(parameter) in wanted:
                kind = (settings, parameter.dim(), parameter.dtype, parameter.device)
                kinds.setdefault(kind, []).append(parameter)
    samples = []
    for found in kinds.values():
        found.sort(key=lambda parameter: parameter.numel())
        small = [parameter for parameter in found if parameter.numel() <= CHECK_NUMEL_MAX]
        samples += found[:1] + small[1:][-1:]
    return samples


def _random_gradients(parameters):
    """Lists of gradients, the same in each call, with zeros of both signs among them."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(CHECK_STEPS):
        step = list(map(torch.zeros_like, parameters))
        for gradient in step:
            dtype = torch.complex64 if gradient.is_complex() else torch.float32
            values = torch.randn(gradient.numel(), generator=generator, dtype=dtype, device="cpu")
            values[1::5], values[2::5] = 0.0, -0.0
            gradient.copy_(values.reshape(gradient.shape))
        yield step


def _outcome(optimizer, parameters):
    return [{**_copied(optimizer.state.get(one, {})), "parameter": _copied(one)}
            for one in parameters]


def _check_steps(optimizer, samples, fresh, rewind):
    """Refuses an optimizer whose steps differ from a fresh one's, or whose state cannot be kept in
    the tensors and numbers that it has now."""
    if not set(map(id, optimizer.state)) <= set(map(id, _parameters(optimizer))):
        _refuse(optimizer, "keeps state that belongs to none of its parameters.")
    states = [optimizer.state.get(parameter, {}) for parameter in samples]
    old = _copied(states)
    leaves, attributes = dict(_flat(states, "state")), _attributes(optimizer)
    for path, leaf in leaves.items():
        if leaf is not None and not isinstance(leaf, (torch.Tensor, bool, int, float, str)):
            _refuse(optimizer, f"keeps an object of the class {type(leaf).__qualname__} in its "
                               f"{_entry(path)}.")
    with _stepped(optimizer, samples, _random_gradients(samples), rewind):
        now = [optimizer.state.get(parameter, {}) for parameter in samples]
        _check_entries(optimizer, leaves, dict(_flat(now, "state")))
        got = dict(_flat(_outcome(optimizer, samples), "after"))
    _put_back(states, old)
    changed = sorted({path for path, _ in attributes.items() ^ _attributes(optimizer).items()})
    if changed:
        _refuse(optimizer, f"counts or sums in its attribute {changed[0].split('.')[1]}.")
    for path, leaf in _flat(fresh, "after"):
        if path not in got or not _same(leaf, got[path]):
            _refuse(optimizer, "treats the first step differently from later ones: with its state "
                               f"made beforehand, the {_entry(path)} differs after "
                               f"{CHECK_STEPS} steps.")


def _check_entries(optimizer, before, now):
    """Refuses state that later steps add, remove, or replace by other tensors."""
    if before.keys() != now.keys():
        path = min(before.keys() ^ now.keys())
        _refuse(optimizer, f"adds or removes its {_entry(path)} in a later step.")
    for path, leaf in before.items():
        if leaf is not now[path] and any(isinstance(it, torch.Tensor) for it in (leaf, now[path])):
            _refuse(optimizer, f"replaces its {_entry(path)} in a step by a tensor that it makes, "
                               "instead of writing into one.")


def _entry(path):
    """In words, without the index of the sample: a path is state.INDEX.KEY and so on."""
    return "parameter" if path.endswith(".parameter") else f"state {path.split('.', 2)[-1]!r}"


def _attributes(optimizer):
    """What the optimizer's attributes hold, as far as a step might count or sum in them. A tensor
    is told by its version, which each write raises. Parameters, their state and what the groups
    hold, such as a rate, are left out."""
    listed = set(map(id, _parameters(optimizer)))
    listed |= {id(leaf) for _, leaf in _flat(optimizer.param_groups, "")}
    listed |= {id(leaf) for state in optimizer.state.values() for _, leaf in _flat(state, "")}
    found = {}

    def visit(path, attributes):
        for place, leaf in _flat(attributes, path):
            if isinstance(leaf, torch.Tensor) and id(leaf) not in listed:
                found[place] = (id(leaf), leaf._version)
            elif isinstance(leaf, torch_optimizer.Optimizer) and leaf is not optimizer:
                visit(place, vars(leaf))   # of a wrapper, as Lookahead
            elif leaf is None or isinstance(leaf, (bool, int, float, str)):
                found[place] = repr(leaf)

    visit("", {key: value for key, value in vars(optimizer).items()
               if key not in ("state", "param_groups")})
    return found


def _correct_sgd(optimizer, parameters):
    """A fresh SGD sets its momentum m to the gradient g, and later to `momentum * m + g`. From
    m = -0.0 on, the latter gives the bits of g, too, also where g is -0.0; from 0.0 on it would
    not. With dampening, and for complex numbers, only _FirstStep does."""
    missing = set(map(id, parameters)) if isinstance(optimizer, torch.optim.SGD) else ()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            if "momentum_buffer" in state and id(parameter) in missing:
                state["momentum_buffer"].fill_(-0.0)
                if group["dampening"] or parameter.is_complex():
                    state[FIRST_STEP] = torch.ones((), dtype=torch.uint8)
    _serve_first_steps(optimizer)


def _serve_first_steps(optimizer):
    hooks = optimizer._optimizer_step_pre_hooks.values()
    if not any(isinstance(getattr(hook, "__self__", None), _FirstStep) for hook in hooks) and any(
            FIRST_STEP in optimizer.state.get(one, {}) for one in _parameters(optimizer)):
        _FirstStep(optimizer)


class _FirstStep:
    """Hooks by which the first step of a parameter finds no momentum, as in a fresh SGD, and the
    one that it makes is copied into the tensor that is listed. Whether a parameter's first step is
    yet to come is a tensor in its state, too, since a worker that joins later must know."""

    def __init__(self, optimizer):
        self._held = []
        optimizer.register_step_pre_hook(self._hide)
        optimizer.register_step_post_hook(self._take)

    def _hide(self, optimizer, *_):
        self._put_back()   # where the last step raised
        for parameter in _parameters(optimizer):
            state = optimizer.state.get(parameter, {})
            if FIRST_STEP in state and state[FIRST_STEP] and "momentum_buffer" in state:
                self._held.append((state, state.pop("momentum_buffer")))

    def _take(self, optimizer, *_):
        for state, buffer in self._held:
            made = state.get("momentum_buffer")
            if made is not None:   # the parameter had a gradient
                buffer.copy_(made)
                state[FIRST_STEP].fill_(0)
        self._put_back()

    def _put_back(self):
        for state, buffer in self._held:
            state["momentum_buffer"] = buffer
        self._held.clear()
