"""Trains a LightningModule on any number of workers, without Lightning's Trainer.

    import evenkeel.lightning            # before PyTorch computes anything
    lightning.seed_everything(0)         # before the module: all workers make the same one
    result = evenkeel.lightning.fit(Digits(), epochs=3, lanes=8)

Promises   the module's own steps, data, optimizer and schedules, by the engine's loop: the same
           last line for any number of workers. A step has the DataLoader's batch_size * lanes
           samples. An overridden hook is called (CALLED), or refused by its name.
Does not   import Lightning: a LightningModule is known by its class's name. Know of Lightning's
           callbacks, loggers and checkpoints: the engine logs and saves.
"""
import contextlib
import fcntl
import inspect
import math
import os
import tempfile
import types
import warnings

import torch
from torch.utils import data as torch_data

from . import _loader
from ._job import LOAD_AHEAD, Job

CALLED = {"on_fit_start", "on_train_start", "on_train_end", "on_fit_end", "on_before_backward",
          "on_before_optimizer_step", "on_after_batch_transfer"}
# Hooks beside those that begin with "on_".
OTHERS = ("backward", "configure_callbacks", "configure_gradient_clipping",
          "configure_sharded_model", "lr_scheduler_step", "optimizer_step", "optimizer_zero_grad",
          "transfer_batch_to_device")
ELSEWHERE = ("on_test_", "on_predict_")   # what no training calls
ON_GPU = "on_gpu"                         # a property


def fit(module, data=None, *, validation=None, monitor=None, epochs=None, evaluate_every=None,
        leave_out=(), on_step=None, on_evaluation=None, **options):
    """The job's result; the module is trained then.

    data            a LightningDataModule, a DataLoader or a dataset; None: the module's own
    validation      the same, a DataLoader or a dataset
    monitor         the name under which validation_step logs what the evaluation tells; None: what
                    it returns, or the only value that it logs
    epochs          in place of `steps`
    evaluate_every  in steps; None: once in an epoch
    leave_out       names of hooks that shall not be called; "state_dict": the data module's state
                    is not kept
    on_step, on_evaluation   as in job.prepare(); report["logged"] has the means of what this worker
                    logged by self.log()
    options         those of ek.Job
    """
    leave_out = set(leave_out)
    _refuse(module, data, leave_out)
    trainer = _Trainer(module)
    source = _set_up(module, data, trainer)
    try:
        train, others = _data_of(module, source, data, validation)
        options = {"lane_batch": train.batch,
                   "load_ahead": max(LOAD_AHEAD, train.workers)} | options
        options |= _steps_of(epochs, options, len(train.dataset))
        job = Job(**options)
        with _attached(module, trainer), _closed_if_refused(job):
            trainer._begin(job, len(train.dataset), epochs)
            if source is not module and "state_dict" not in leave_out:
                _keep(job, source)
            _train(job, module, trainer, train, on_step=_telling(trainer, on_step),
                   on_evaluation=_telling(trainer, on_evaluation),
                   evaluate=_evaluation_of(module, trainer, others, monitor, evaluate_every))
            for one in dict.fromkeys((source, module)):
                one.teardown("fit")
    finally:
        for one in {module, source}:
            one.trainer = None
    return job.result


def _train(job, module, trainer, train, **callbacks):
    module.configure_model()
    module.to(job.config["device"])
    optimizer, schedules = _optimizer_of(module.configure_optimizers(), trainer)
    trainer._take(optimizer, schedules)
    module.on_fit_start()
    module.on_train_start()
    job.prepare(module, optimizer, train.dataset, schedulers=schedules,
                collate_fn=train.collate_fn, num_workers=train.workers,
                before_apply=lambda: module.on_before_optimizer_step(optimizer), **callbacks)
    for batch in job:
        loss = _result_of(module, module.training_step, batch, trainer._batch_index())
        loss = loss["loss"] if isinstance(loss, dict) else loss
        if loss is None:
            raise RuntimeError("training_step returned None, by which Lightning leaves a batch "
                               "out; here every batch counts: return a loss of 0 * something")
        module.on_before_backward(loss)
        job.backward(loss)
    module.on_train_end()
    module.on_fit_end()


# --- What the module sees ---

class _Trainer:
    """self.trainer within the module: as much of Lightning's as makes sense for a job."""
    logger = progress_bar_callback = None
    barebones = sanity_checking = testing = predicting = False
    training, validating = True, False
    _job = None

    def __init__(self, module):
        self.lightning_module, self.loggers = module, []
        self.is_global_zero = os.environ.get("RANK", "0") == "0"
        self.global_rank = int(os.environ.get("RANK", "0"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.callback_metrics = self.logged_metrics = {}
        self._values, self._evaluated = {}, 0

    def __getattr__(self, name):
        raise AttributeError(f"self.trainer.{name}: evenkeel.lightning.fit() has no Trainer of "
                             "Lightning's, and no such value (or not yet); take it from elsewhere")

    def _begin(self, job, samples, epochs):
        self._job, self._samples = job, samples
        self._step_samples = job.config["lanes"] * job.config["lane_batch"]
        self.max_steps = self.estimated_stepping_batches = job.config["steps"]
        if epochs is None:
            epochs = self.max_steps * self._step_samples / samples
        self.max_epochs = math.ceil(epochs)
        self.num_training_batches = max(1, samples // self._step_samples)
        self.accumulate_grad_batches = 1

    def _take(self, optimizer, schedules):
        self.optimizers, self._schedules = [optimizer], schedules
        self.strategy = types.SimpleNamespace(_lightning_optimizers=self.optimizers)
        self.lr_scheduler_configs = [types.SimpleNamespace(scheduler=one.scheduler)
                                     for one in schedules]

    @property
    def global_step(self):
        """The optimizer's steps. The same for a lane that comes again, on whichever worker."""
        return 0 if self._job is None or self._job._program is None else self._job._program.applied

    @property
    def current_epoch(self):
        if self._job is None:
            return 0
        # An evaluation belongs to the step that was made.
        return self._epoch_of(max(0, self._made() - 1) if self.validating else self._made())

    def _made(self):
        """Steps by which the data have advanced: also those that were skipped, since something was
        not finite. As global_step, the same for a lane that comes again."""
        return 0 if self._job._program is None else self._job._program.made

    def _epoch_of(self, step):
        """In which this step's samples begin."""
        return step * self._step_samples // self._samples

    def _batch_index(self):
        """Of the step that is being made: all its lanes have the same."""
        self._evaluated = 0
        return self._number_of(self._made())

    def _number_of(self, step):
        """A step's number within its epoch."""
        return step - math.ceil(self._epoch_of(step) * self._samples / self._step_samples)

    def _log(self, name, value, *_, **__):
        """In place of the module's log()."""
        if hasattr(value, "compute"):   # a metric of torchmetrics: its value since the last time
            metric, value = value, value.compute()
            metric.reset()
        value = torch.as_tensor(value).detach().float().mean()
        self._values.setdefault(name, []).append(value)

    def _logged(self):
        """The means since the last time."""
        means = {name: float(sum(values) / len(values)) for name, values in self._values.items()}
        self._values = {}
        self.callback_metrics = self.logged_metrics = {**self.callback_metrics, **means}
        return means


@contextlib.contextmanager
def _attached(module, trainer):
    """Inside, self.trainer and self.log() are those of the job, also in modules within it."""
    logging = [one for one in module.modules() if hasattr(one, "log_dict")]
    module.trainer = trainer
    for one in logging:
        one.log = trainer._log
    try:
        yield
    finally:
        for one in logging:
            del one.log


@contextlib.contextmanager
def _closed_if_refused(job):
    try:
        yield
    except Exception:
        if job._program is None:   # so that a session may correct it, and try again
            job._close()
        raise


def _telling(trainer, callback):
    def tell(report):
        logged = trainer._logged()
        if not report.get("applied", True):   # so that nobody has stepped them
            for one in trainer._schedules:
                one.step()
        if callback is not None:
            callback(report | {"logged": logged})
    return tell


def _result_of(module, step, batch, index):
    """Of training_step or validation_step, which take one to three arguments."""
    batch = module.on_after_batch_transfer(batch, 0)
    kinds = [one.kind for one in inspect.signature(step).parameters.values()]
    count = 2 if inspect.Parameter.VAR_POSITIONAL in kinds else min(len(kinds), 3)
    return step(*(batch, index, 0)[:count])


def _evaluation_of(module, trainer, others, monitor, every):
    if others is None:
        return None
    every = trainer.num_training_batches if every is None else every

    def metric(batch):
        outer, trainer._values = trainer._values, {}
        trainer.training, trainer.validating = False, True
        try:
            value = _result_of(module, module.validation_step, batch, trainer._evaluated)
            mine = trainer._values
        finally:
            trainer.training, trainer.validating = True, False
            trainer._values = outer
        trainer._evaluated += 1
        for name, values in mine.items():
            outer.setdefault(name, []).extend(values)
        return _monitored(value, mine, monitor)

    return others.dataset, metric, every, others.collate_fn


def _monitored(value, logged, monitor):
    value = value.get("loss") if isinstance(value, dict) else value
    if monitor is None and value is None and len(logged) == 1:
        monitor = next(iter(logged))
    if monitor in logged:
        return float(logged[monitor][-1])
    if monitor is not None or value is None:
        raise TypeError(f"validation_step logged {', '.join(logged) or 'nothing'}, and not what "
                        f"the evaluation shall tell; name one: fit(monitor=\"val_loss\")")
    return float(value)


# --- The optimizer and its schedules ---

def _optimizer_of(given, trainer):
    """(optimizer, schedules) of what configure_optimizers() returned, in any of its forms."""
    schedules = []
    if isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], (list, tuple)):
        given, schedules = given
        schedules = schedules if isinstance(schedules, (list, tuple)) else [schedules]
    if isinstance(given, (list, tuple)) and len(given) == 1:
        given = given[0]
    if isinstance(given, dict):
        schedules = [given["lr_scheduler"]] if given.get("lr_scheduler") is not None else []
        given = given["optimizer"]
    if isinstance(given, (list, tuple)):
        raise TypeError(f"configure_optimizers() returned {len(given)} optimizers; a job has one: "
                        "give all parameters to it, in groups")
    if not isinstance(given, torch.optim.Optimizer):
        raise TypeError(f"configure_optimizers() returned a {type(given).__name__}; an optimizer "
                        "of torch.optim is what a job trains with here")
    return given, [_Schedule(one, trainer) for one in schedules]


class _Schedule:
    """A schedule that is stepped where Lightning steps it: after each step, also one that was
    skipped, or each epoch."""

    def __init__(self, given, trainer):
        entry = given if isinstance(given, dict) else {"scheduler": given}
        self.scheduler, self._trainer = entry["scheduler"], trainer
        self._by_epoch = entry.get("interval", "epoch") == "epoch"
        self._every = entry.get("frequency", 1)
        if entry.get("reduce_on_plateau") or isinstance(
                self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise TypeError("a schedule that follows a metric, as ReduceLROnPlateau does, is not "
                            "exact when a worker dies; take one that follows the steps")

    def step(self):
        made = self._trainer._made()   # the step that was just made counts
        numbers = [self._trainer._number_of(made - 1) + 1]   # within its epoch
        if self._by_epoch:
            before, now = map(self._trainer._epoch_of, (made - 1, made))
            numbers = range(before + 1, now + 1)
        for number in numbers:
            if number % self._every == 0:
                self.scheduler.step()

    def state_dict(self):
        return self.scheduler.state_dict()

    def load_state_dict(self, state):
        self.scheduler.load_state_dict(state)


# --- Data ---

def _set_up(module, data, trainer):
    """The module or data module whose DataLoaders count, after prepare_data() and setup(). The
    workers of a host take turns, as only the first of them may have to fetch something."""
    source = data if hasattr(data, "train_dataloader") else module
    with open(os.path.join(tempfile.gettempdir(), f"evenkeel-prepare-{os.getuid()}.lock"), "w",
              encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        trainer.datamodule = None if source is module else source
        try:
            for one in dict.fromkeys((source, module)):
                one.trainer = trainer
                one.prepare_data()
        finally:   # a process that was forked meanwhile, and stays, has the file open, too
            fcntl.flock(lock, fcntl.LOCK_UN)
    for one in dict.fromkeys((source, module)):
        one.setup("fit")
    return source


def _data_of(module, source, data, validation):
    """What is trained on, and what is evaluated on or None."""
    train = _Data(data if data is not None and source is not data else source.train_dataloader(),
                  "train_dataloader()")
    if not _overrides(module, "validation_step"):
        if validation is not None:
            raise TypeError("the module has no validation_step, so that it cannot take "
                            "`validation`; give it one")
        return train, None
    if validation is None and _overrides(source, "val_dataloader"):
        validation = source.val_dataloader()
        if isinstance(validation, (list, tuple)) and not validation:   # that is Lightning's "none"
            validation = None
    return train, None if validation is None else _Data(validation, "val_dataloader()")


def _keep(job, source):
    """Registers the state of a data module, which Lightning saves in its checkpoints."""
    if _base_of(source) is None or not _overrides(source, "state_dict"):
        return
    if _overrides(source, "load_state_dict"):
        job.register("datamodule", _State(source))
    elif source.state_dict():
        raise TypeError(f"{type(source).__name__}.state_dict() has something to keep, and no "
                        "load_state_dict() takes it again; give the class one, or, if the training "
                        "does without, say fit(leave_out=[\"state_dict\"])")


class _State:
    """That of a data module. As with Lightning, an empty one is neither kept nor given back."""

    def __init__(self, source):
        self._source = source

    def state_dict(self):
        return self._source.state_dict() or {}

    def load_state_dict(self, state):
        if state:
            self._source.load_state_dict(state)


class _Data:
    """A dataset, and how its DataLoader, if it has one, makes batches of it."""

    def __init__(self, given, what):
        if isinstance(given, (list, tuple)) and len(given) == 1 and \
                isinstance(given[0], torch_data.DataLoader):
            if what.startswith("train"):
                raise TypeError(f"{what} gave a list of one DataLoader, whose batches Lightning "
                                "makes lists of one: give the DataLoader itself, and take its "
                                "batches as they are in training_step")
            given = given[0]   # batches of a validation are as they are
        self.dataset, self.collate_fn, self.batch, self.workers = given, None, None, 0
        if isinstance(given, (list, tuple, dict)) or hasattr(given, "iterables"):
            raise TypeError(f"{what} gave several DataLoaders or none, and a job has one; join "
                            "their datasets, for instance by torch.utils.data.ConcatDataset")
        if not isinstance(given, torch_data.DataLoader):
            _loader.refuse_stream(given)
            return
        self.dataset, self.collate_fn = given.dataset, given.collate_fn
        self.batch, self.workers = given.batch_size, given.num_workers
        _loader.refuse_stream(given.dataset)
        if self.batch is None or type(given.batch_sampler) is not torch_data.BatchSampler:
            raise TypeError(f"the DataLoader of {what} has a batch_sampler, or no batch_size; the "
                            "job puts batches together itself: give a batch_size")
        sampler = type(given.sampler)
        if sampler not in (torch_data.RandomSampler, torch_data.SequentialSampler) or \
                getattr(given.sampler, "replacement", False):
            raise TypeError(f"the DataLoader of {what} has a {sampler.__name__}; the job orders "
                            "samples itself, each once in an epoch: take shuffle=True, and a "
                            "dataset that has the samples as often as they shall come")
        if len(given.sampler) != len(given.dataset):
            raise TypeError(f"the DataLoader of {what} has a {sampler.__name__} of "
                            f"{len(given.sampler)} samples, and a dataset of "
                            f"{len(given.dataset)}; the job takes each once in an epoch: leave "
                            "the sampler out, and give the dataset the samples that shall come, "
                            "for instance by torch.utils.data.Subset")
        if given.worker_init_fn is not None:
            raise TypeError(f"the DataLoader of {what} has a worker_init_fn, which nobody calls: "
                            "a sample's random numbers are seeded anyway, and what else it does "
                            "belongs into the dataset")
        if sampler is torch_data.SequentialSampler and what.startswith("train"):
            warnings.warn("the DataLoader of train_dataloader() does not shuffle, but a job "
                          "always does", stacklevel=4)


def _steps_of(epochs, options, samples):
    if (epochs is None) == (options.get("steps") is None):
        raise TypeError("fit() takes either epochs or steps: how long to train")
    if epochs is None:
        return {}
    lanes, batch = options.get("lanes"), options.get("lane_batch")
    if not lanes or not batch:
        raise TypeError("an epoch has samples / (lanes * batch size) steps; give fit() `lanes`, "
                        "and a DataLoader or `lane_batch`")
    return {"steps": math.ceil(epochs * samples / (lanes * batch))}


# --- What is refused ---

def _base_of(thing):
    names = ("LightningModule", "LightningDataModule")
    return next((one for one in type(thing).__mro__ if one.__name__ in names), None)


def _overrides(thing, name):
    base = _base_of(thing)
    return getattr(type(thing), name, None) is not getattr(base, name, None) \
        or name in vars(thing)


def _refuse(module, data, leave_out):
    base = _base_of(module)
    if base is None or isinstance(module, type):
        raise TypeError(f"fit() takes a LightningModule, not a {type(module).__name__}")
    if not module.automatic_optimization:
        raise TypeError("the module has automatic_optimization=False, so that it calls backward "
                        "and its optimizer itself; a job does that. Give it one optimizer and the "
                        "automatic form, or write a loop over an ek.Job")
    if "dataloader_iter" in inspect.signature(module.training_step).parameters:
        raise TypeError("training_step takes a dataloader_iter; a job gives batches: take `batch`")
    for thing in (module, data):
        base = _base_of(thing)
        hooks = [] if base is None else \
            [name for name in dir(base) if (name.startswith("on_") or name in OTHERS)
             and not name.startswith(ELSEWHERE) and name != ON_GPU]
        called = CALLED if thing is module else ()
        for name in hooks:
            if name not in leave_out and name not in called and _overrides(thing, name):
                raise TypeError(
                    f"{type(thing).__name__}.{name}() would not be called: workers have only some "
                    "of a step's batches each, and the loop is the job's. Move what it does into "
                    "training_step or on_before_optimizer_step, or, if the training does without, "
                    f"say fit(leave_out=[\"{name}\"])")
