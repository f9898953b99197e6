"""The engine, as its library shows it to Python.

Promises   importing it loads the library that was made for this LibTorch, or says which there is.
           Numbers that are unsigned in the engine are unsigned here.
Does not   know of models, optimizers or datasets: that is the job's.
"""
import collections
import json
import os

import torch

_MASK = 2**64 - 1

# Kinds of tasks, as the engine counts them (trainer/driver.h).
NOTHING, LANE, BACKWARD, APPLY, MEASURE, STEP, EVALUATED, END = range(-1, 7)

Task = collections.namedtuple(
    "Task", "kind batch seed number is_replaced wanted dropped report made")
# A batch whose samples will be asked for.
Wanted = collections.namedtuple("Wanted", "batch is_evaluation seed indices")


def _load():
    """In a wheel there is an engine for each minor version of PyTorch, in a build the one."""
    here = os.path.dirname(os.path.abspath(__file__))
    version = ".".join(torch.__version__.split(".")[:2])
    name = "libevenkeel_python.so"
    path = os.path.join(here, name)
    if not os.path.exists(path):
        path = os.path.join(here, f"torch{version}", name)
    if not os.path.exists(path):
        there = sorted((one[len("torch"):] for one in os.listdir(here) if one.startswith("torch")),
                       key=lambda one: [int(part) for part in one.split(".")])
        raise ImportError(f"evenkeel has no engine for torch {torch.__version__}, only for "
                          f"{', '.join(there) or 'none'}: install one of these, or make an "
                          f"engine for the torch that is here: python -m evenkeel_build")
    try:
        torch.classes.load_library(path)
    except OSError as error:
        raise ImportError(f"the engine at {path} does not fit torch {torch.__version__}, and was "
                          f"perhaps built for another: {error}. A build is for one version: take "
                          f"a Python that has it, or build again (KEEL_TORCH_VERSION=VERSION "
                          f"tools/setup.sh)") from None


def _prepare():
    # Kernels are chosen with PyTorch's first computation, which may come before the job.
    try:
        torch.ops.evenkeel.prepare(os.environ.get("EVENKEEL_NUMERICS") != "native")
    except RuntimeError as error:
        raise ImportError(str(error)) from None


_load()
_prepare()


def words_of(options):
    """{"save_every": 200} as the words of a command line."""
    words = []
    for name, value in options.items():
        if value is None:
            continue
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option if value else f"{option}=no")
        else:
            words.append(f"{option}={os.fspath(value) if hasattr(value, '__fspath__') else value}")
    return words


def examine(name, about, settings, defaults, words):
    """(None, "") if a job can begin with these words; else its exit code, and what to print.
    `defaults`: the script's own, as words, too."""
    code, text = torch.ops.evenkeel.examine(name, about, json.dumps(settings), defaults, words)
    return (None if code < 0 else code), text


class Engine:
    """One training; its calls give RuntimeError with the engine's words."""

    def __init__(self, name, about, settings, defaults, words):
        self._engine = torch.classes.evenkeel.Engine(name, about, json.dumps(settings), defaults,
                                                     words)
        self.config = json.loads(self._engine.config())
        self.settings = json.loads(self._engine.settings())
        self._owes_answer = False

    def set_model(self, parameters, buffers, frozen, derived):
        """Each a list of (name, tensor); `derived` has the names of those that files of weights
        need not have."""
        self._engine.set_model(*_columns(parameters), *_columns(buffers), *_columns(frozen),
                               derived)

    def set_optimizer(self, text, state):
        self._engine.set_optimizer(text, *_columns(state))

    def set_own_optimizer(self, name, settings):
        self._engine.set_own_optimizer(name, json.dumps(settings))

    def set_kept(self, kept):
        self._engine.set_kept(*_columns(kept))

    def set_data(self, samples, identity):
        self._engine.set_data(samples, identity)

    def set_evaluation(self, samples, every, batch):
        self._engine.set_evaluation(samples, every, batch)

    def begin(self, wants_steps, wants_evaluations):
        self._engine.begin(wants_steps, wants_evaluations)

    def next(self, limit_ms):
        self._owes_answer = False
        kind, batch, seed, number, is_replaced, wanted, dropped, report, made = \
            self._engine.next(limit_ms)
        return Task(kind, batch & _MASK, seed & _MASK, number, is_replaced,
                    [Wanted(one & _MASK, is_evaluation, its_seed & _MASK, indices)
                     for one, is_evaluation, its_seed, indices in wanted],
                    [one & _MASK for one in dropped], _report_of(report), made)

    def leave_out(self):
        """Before the optimizer's step: not of parameters that this worker has yet to receive."""
        self._engine.leave_out()

    def answer(self, number=0.0, error=""):
        """Heard when the script asks for what is next. Until then what it does changes no bit: the
        engine puts buffers back and seeds generators for the next lane once it has the answer."""
        self._engine.answer(float(number), error)
        self._owes_answer = True

    def owes_answer(self):
        return self._owes_answer

    def fail(self, why):
        self._engine.fail(why)

    def ended(self):
        return self._engine.ended()

    def join(self):
        return json.loads(self._engine.join())

    def close(self):
        self._engine.close()


def _report_of(text):
    """JSON has no infinities and NaNs: the engine gives their names."""
    if not text:
        return None
    report = json.loads(text)
    for key in ("loss", "value", "learning_rate", "gradient_norm"):
        if isinstance(report.get(key), str):
            report[key] = float(report[key])
    if "lane_losses" in report:
        report["lane_losses"] = [float(one) for one in report["lane_losses"]]
    return report


def _columns(named):
    for name, tensor in named:   # the engine reads and writes their memory as it is
        if tensor.is_conj() or tensor.is_neg():
            raise TypeError(f"'{name}' is a view that PyTorch conjugates or negates when it is "
                            "read; make it of tensor.resolve_conj().resolve_neg()")
    names = [name for name, _ in named]
    return names, [tensor for _, tensor in named]
