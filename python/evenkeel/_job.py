"""The training of a script that owns its loop.

Promises   the same last line for any number of workers, whatever befalls them, if what the loop
           does with a batch depends on the parameters, the batch and the seeded generators alone.
           An exception of the script is told to the launcher before it ends the script.
Does not   print or log: the engine logs.
"""
import contextlib
import hashlib
import operator
import re
import sys
import time

import torch

from . import (_batches, _checkpoints, _engine, _ending, _leaves, _loader, _optimizer, _own,
               _refused, _seeds, _untouched)

LOAD_AHEAD = 4   # the default of the option
# Within it the handlers of Python's signals run.
LOOK_MS = 100
AUTOCAST = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
_NO_MORE = object()   # in place of a batch
LINE = re.compile(r"final step=(\d+) trail=(\w+) digest=(\w+)")


class Result:
    """How a job ended: the same on every worker. Its text is the last line of the C++ programs."""

    def __init__(self, line):
        self.step, self.trail, self.digest = LINE.fullmatch(line).groups()
        self.step = int(self.step)
        self._line = line

    def __str__(self):
        return self._line

    def __repr__(self):
        return f"<{self._line}>"


class Job:
    """One training. The options are those of the command line with `_` for `-`: steps, lanes,
    lane_batch, seed, checkpoint_dir, save_every, precision, clip_norm ...; `--help` of a script
    that calls from_args() lists them all. Seeds every generator: make the model after it.

    settings    what shapes the script's results beside them, as {"width": 64}: whole numbers,
                numbers, texts, truths. Workers that differ in one do not train together, and a
                checkpoint goes on only with the same; job.settings has them."""

    def __init__(self, *, settings=None, **options):
        self._open(settings or {}, [], _engine.words_of(options))

    @classmethod
    def from_args(cls, arguments=None, *, settings=None, **defaults):
        """The same from a command line (the script's own, if none is given), whose options win over
        a config file's, and these over `defaults`; the settings are options, too. Prints and exits
        for --help, and for options that make no sense."""
        given = list(sys.argv[1:] if arguments is None else arguments)
        job = cls.__new__(cls)
        job._open(settings or {}, _engine.words_of(defaults), given)
        return job

    def _open(self, settings, defaults, words):
        _ending.install()
        _ending.end_left()
        name, about = _ending.script_name(), "Trains by evenkeel."
        code, text = _engine.examine(name, about, settings, defaults, words)
        if code is not None:
            _ending.leave(code, text if code == 0 else f"{name}: {text}")
        self._engine = _engine.Engine(name, about, settings, defaults, words)
        self.settings = self._engine.settings
        self.config = self._engine.config
        _seeds.seed_all(self.config["seed"])
        self.result = None
        self._registered = {}
        self._program = None
        self._kept_task = None
        self._lane = None
        self._options = [*defaults, *words]
        self._ended = self._replaced = False
        self._error = None   # the words of what has ended the training
        _ending.watch(self)

    # --- What is trained ---

    def register(self, name, thing):
        """Whatever else must go on exactly: anything with state_dict() and load_state_dict()."""
        if self._program is not None:
            raise RuntimeError("register it before job.prepare(): then the engine takes its list")
        _refused.refuse_registered(name, thing)
        if name in self._registered:
            raise ValueError(f"'{name}' is registered already")
        self._registered[name] = thing

    def prepare(self, model, optimizer, dataset, *, schedulers=(), collate_fn=None, num_workers=0,
                evaluate=None, on_step=None, on_evaluation=None, before_apply=None, data=""):
        """Tells the engine what to train.

        optimizer      one of torch.optim, or ek.AdamW() or ek.SGD(): the engine's own, fused
        schedulers     stepped once after each step of the optimizer
        num_workers    processes that load samples ahead, as far as the job's `load_ahead` says:
                       more of them than that have nothing to do
        evaluate       (dataset, metric, every): metric(batch) is the mean over a batch's samples.
                       A fourth entry is a collate_fn of its own
        on_step        called with a dict after each step, on every worker
        before_apply   called with nothing before the optimizer's step, when gradients are complete
        data           tells these samples from others of the same number, on every machine
        """
        if self._program is not None:
            raise RuntimeError("a job is prepared once; make another ek.Job for another training")
        _refuse_evaluation(evaluate)
        program = _Program(self, model, optimizer, schedulers, before_apply)
        program.loader = _loader.Loader(dataset, collate_fn, num_workers)
        program.on_step, program.on_evaluation = on_step, on_evaluation
        self._engine.set_data(len(dataset), data)
        if evaluate is not None:
            others, metric, every, *its_collate = evaluate
            program.metric = metric
            program.evaluation_loader = _loader.Loader(others, *(its_collate or [collate_fn]))
            self._engine.set_evaluation(len(others), every, 0)
        self._program = program
        _refused.watch_loop(self)
        # What the model, the dataset and the processes above drew shall change no bit.
        _seeds.seed_all(self.config["seed"])

    # --- The loop ---

    def __iter__(self):
        self._refuse_if_over()
        if self._program is None:
            raise RuntimeError("call job.prepare(model, optimizer, dataset) before the loop")
        if self._lane is None and not self._ended:
            self._program.begin()
        return self

    def __next__(self):
        self._refuse_if_over()
        if self._ended:
            raise StopIteration
        if self._lane is not None:
            raise RuntimeError("job.backward(loss) was not called for the last batch; call it once "
                               "for each batch that the job gives. A loop that an interrupt or an "
                               "error has left within a batch does not go on: make another ek.Job")
        if self._engine.owes_answer():   # else the engine may have changed them
            self._program.check_behind_backward()
        try:
            batch = self._next_batch()
        except BaseException as error:   # the engine waits for an answer that nobody can give
            self._note_unless_ended(error)
            raise
        if batch is _NO_MORE:
            raise StopIteration
        if self._program.optimizer is None:   # the engine's own has changed them, without a task
            self._program.untouched.note()
        self._program.untouched.look()
        self._lane = self._program.autocast()
        self._lane.__enter__()
        return batch

    def _next_batch(self):
        task = self._task()
        while task.kind != _engine.LANE:
            if task.kind == _engine.END:
                self._end()
                return _NO_MORE
            self._program.do(task)
            task = self._task()
        return self._program.batch_of(task)

    def backward(self, loss):
        """In place of loss.backward(), once for each batch."""
        self._refuse_if_over()
        if self._lane is None:
            raise RuntimeError("job.backward() is called once for each batch, within the loop")
        value = _value_of(loss)   # whoever catches what this raises is in the lane still
        self._program.held.check()
        self._program.check_parameters()
        lane, self._lane = self._lane, None
        lane.__exit__(None, None, None)
        try:
            self._run_backward(loss.float(), value)
        except BaseException as error:
            self._note_unless_ended(error)
            raise

    def _run_backward(self, loss, value):
        self._engine.answer(value)
        task = self._task()
        if task.kind != _engine.BACKWARD:   # others were lost, and the lane comes again
            self._kept_task = task
            return
        try:
            (loss if task.number == 1 else loss * task.number).backward()
        except Exception as error:   # the exchange may have broken, which is no error of the loop
            self._engine.answer(error=_ending.text_of(error))
            task = self._task()
            if task.kind == _engine.END:
                self._end(error)
            self._kept_task = task
        else:
            self._engine.answer()
            self._program.note_gradients()

    def _is_in_lane(self):
        """Whether a batch was given whose backward is yet to come."""
        return self._lane is not None and not self._ended

    def _keeps_gradients(self, tensors):
        """Whether one of these is a gradient of the job's, which only its callbacks may change."""
        program = self._program
        if not program.has_begun or self._ended or program.is_called:
            return False
        known = {id(one) for one in tensors}   # in all lanes but the last there are none yet
        return not known or any(id(one.grad) in known for one in program.trained
                                if one.grad is not None)

    def _is_behind_backward(self, parameters):
        """Whether some of these are trained, and the loop's body has run a backward."""
        program = self._program
        return (program.has_begun and not self._ended and not program.is_called
                and self._engine.owes_answer()
                and any(id(one) in parameters for one in program.trained))

    def fit(self, loss_of):
        """The whole loop, for a function that gives a batch's loss."""
        for batch in self:
            self.backward(loss_of(batch))
        return self.result

    def _task(self):
        """The next task; what it tells of batches is noted."""
        if self._kept_task is not None:
            task, self._kept_task = self._kept_task, None
            return task
        while True:
            task = self._engine.next(LOOK_MS)
            if task.kind != _engine.NOTHING:
                self._program.note(task)
                return task

    # --- Its end ---

    def _end(self, cause=None):
        """`cause`: what a backward threw, if that is why."""
        ended = self._engine.join()
        if ended.get("finished"):
            self._program.made = ended["step"]
            self._program.load()   # the end may be the first that this worker hears of the state
        self._close()
        if ended["error"]:
            error = cause or RuntimeError(ended["error"])
            self._note(error)
            _ending.note_error()
            raise error
        if ended["refused"]:
            _ending.leave(ended["code"], f"{_ending.script_name()}: {ended['refused']}")
        if not ended["finished"]:   # what follows the loop is for a job that has finished
            _ending.leave(ended["code"])
        self.result = Result(ended["last_line"])

    def _end_for_another(self):
        self._fail("the script has made another job")
        self._replaced = True

    def _note(self, error):
        """The first one that the loop cannot go on after. Its words only: it has the frames, and
        what they hold."""
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
        if isinstance(error, SystemExit):   # of a callback or a dataset
            words += "; let the loop run to its end, or stop the job by a signal"
        self._error = self._error or words

    def _note_unless_ended(self, error):
        """One that comes of _end() has been noted, or is how a script leaves that was stopped."""
        if not self._ended:
            self._note(error)

    def _refuse_if_over(self):
        if self._replaced:
            raise RuntimeError("this job was ended when the script made another one: a process "
                               "trains one job at a time")
        if self._error is not None:
            raise RuntimeError("the training was ended by an error, and does not go on when a "
                               f"script catches it: {self._error}")

    def _close(self):
        self._ended = True
        if self._lane is not None:
            self._lane.__exit__(None, None, None)
            self._lane = None
        _ending.unwatch(self)
        if self._program is not None:
            self._program.close()
        self._engine.close()

    def _fail(self, why):
        """The script cannot go on: the launcher is told why. Not for a job that has ended."""
        if self._ended:
            return
        if self._program is not None and self._program.has_begun:
            self._engine.fail(why)
            while not self._engine.ended():   # it may wait for others; an interrupt ends that
                time.sleep(0.02)
            self._engine.join()
        self._error = self._error or why.rstrip().splitlines()[-1]
        self._close()


class _Program:
    """What a job trains, and what it does when the engine asks."""

    def __init__(self, job, model, optimizer, schedulers, before_apply):
        self.engine, self.model = job._engine, model
        self.has_begun = False
        self.optimizer = self.loader = self.evaluation_loader = None
        self.on_step = self.on_evaluation = self.metric = None
        self.before_apply = before_apply
        self.schedulers = list(schedulers)
        self.is_applying = self.is_called = self.has_ended = False
        self.gradients = []
        # Steps of the optimizer; steps of the engine, which also counts those that it skips.
        self.seed, self.applied, self.made = job.config["seed"], 0, 0
        self.trained = [one for one in model.parameters() if one.requires_grad]
        self.untouched = _untouched.Untouched(model.parameters())
        self.held = _untouched.Held(model)
        self.device = torch.device(job.config["device"])
        self.dtype = AUTOCAST[job.config["precision"]]
        _refused.refuse_model(model, job.config["numerics"])
        for one in self.schedulers:
            _refused.refuse_schedule(one)
        parameters = [(name, one) for name, one in model.named_parameters()]
        self.engine.set_model([item for item in parameters if item[1].requires_grad],
                              list(model.named_buffers()),
                              [item for item in parameters if not item[1].requires_grad],
                              _checkpoints.left_out_of(model))
        self.leaves, self.of_schedules = [], []
        known = [tensor for _, tensor in [*parameters, *model.named_buffers()]]
        if isinstance(optimizer, _own.Own):
            if self.schedulers or before_apply:
                raise TypeError("schedulers and before_apply are for an optimizer of torch.optim; "
                                "the engine's own follows the job's `lr` and `schedule`")
            self.engine.set_own_optimizer(optimizer.name, optimizer.settings())
        else:
            _optimizer.refuse_rates(optimizer)
            _refused.refuse_rate(job._options, job.config, optimizer)
            self._take(optimizer, {one: name for name, one in parameters})
        for number, scheduler in enumerate(self.schedulers):
            self.of_schedules.append(_leaves.of_object(f"scheduler{number}", scheduler))
        self.leaves += self.of_schedules
        for name, thing in job._registered.items():
            self.leaves.append(_leaves.of_object(name, thing, known=known))
        self.engine.set_kept([item for one in self.leaves for item in one.tensors()]
                             + _checkpoints.names_of(model))

    def _take(self, optimizer, names):
        _optimizer.materialize(optimizer)
        self.optimizer, self.names = optimizer, names
        self.leaves.append(_leaves.of_groups("groups", optimizer))
        self.leaves.append(_optimizer.state_numbers("numbers", optimizer, names))
        self.state = _optimizer.state_tensors(optimizer, names)
        optimizer.register_step_pre_hook(self._refuse_own)
        self.leaves.append(_leaves.Leaves("applied", lambda: {"steps": self.applied},
                                          lambda state: setattr(self, "applied", state["steps"])))
        self.engine.set_optimizer(_optimizer.describe(optimizer), self.state)

    # --- What a loop of DDP does itself ---

    def _refuse_own(self, *_):
        if self.has_begun and not self.is_applying and not self.has_ended:
            raise RuntimeError("the job calls optimizer.step() itself when a step's gradients are "
                               "complete; leave it out of the loop")

    def _check_loop(self):
        """Whether the loop left alone what is the job's."""
        self.untouched.check_bits()
        if any(one.requires_grad and one.grad is None for one in self.trained):
            raise RuntimeError("gradients were removed before the optimizer's step; leave "
                               "zero_grad() out of the loop, the job does that")
        if not all(one.has_same_numbers() for one in self.of_schedules):
            raise RuntimeError("a scheduler of the job was stepped or changed in the loop, which "
                               "each worker runs for its own lanes only; leave scheduler.step() "
                               "out of it, the job does that once after each step")
        if self.rates != self._rates():
            raise RuntimeError("the optimizer's rate was changed in the loop; give the job the "
                               "scheduler (job.prepare(schedulers=...)), or change the rate in "
                               "before_apply, which every worker runs once a step")

    def note_gradients(self):
        """A backward has ended. (Their versions may rise yet: others' are being added.)"""
        self.gradients = [one.grad for one in self.trained]

    def check_behind_backward(self):
        """The loop's body has ended, and the engine has not gone on yet."""
        self.untouched.check()
        if any(one.grad is not was for one, was in zip(self.trained, self.gradients)):
            raise RuntimeError("gradients were removed or replaced behind job.backward(), where "
                               "they are being added up; leave zero_grad() out of the loop, and do "
                               "the rest in before_apply, which is called when they are complete")
        self.gradients = []

    def _rates(self):
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def check_parameters(self):
        if self.optimizer is None:   # the engine's own changes them as soon as it has the gradients
            self.untouched.check_bits()
        else:
            self.untouched.check()

    def begin(self):
        if self.has_begun:
            return
        if self.optimizer is not None:
            _optimizer.check_state(self.optimizer, self.names, self.state)
        self._store()
        self.untouched.note()
        self.engine.begin(self.on_step is not None, self.on_evaluation is not None)
        self.has_begun = True

    def close(self):
        self.has_ended = True
        for loader in (self.loader, self.evaluation_loader):
            if loader is not None:
                loader.close()

    # --- Samples ---

    def note(self, task):
        if task.kind != _engine.END:
            self.made = task.made
        if task.is_replaced and task.kind != _engine.END:
            self.load()
        for one in task.wanted:
            loader = self.evaluation_loader if one.is_evaluation else self.loader
            loader.want(one.batch, one.indices, one.seed)
        for batch in task.dropped:
            self.loader.drop(batch)
            if self.evaluation_loader is not None:
                self.evaluation_loader.drop(batch)

    def load(self):
        """The engine has replaced the values of tensors."""
        for one in self.leaves:
            one.load()
        self._note_rates()
        self.untouched.note()

    def batch_of(self, task):
        loader = self.evaluation_loader if task.kind == _engine.MEASURE else self.loader
        batch = loader.take(task.batch)
        _seeds.seed_all(task.seed)
        return batch if self.device.type == "cpu" else _batches.moved(batch, self.device)

    def autocast(self):
        if self.dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.dtype)

    # --- Tasks ---

    def do(self, task):
        self.is_called = True
        try:
            self._do(task)
        except StopIteration as error:   # else the loop over the job would take it for its end
            raise RuntimeError("a callback raised StopIteration: it has no more to give") from error
        finally:
            self.is_called = False
        self.untouched.note()

    def _do(self, task):
        if task.kind == _engine.APPLY:
            self.engine.answer(self._apply())
        elif task.kind == _engine.MEASURE:
            self.engine.answer(self._measure(task))
        elif task.kind == _engine.STEP:
            self._seed("step", task.report["step"])
            if not task.report["applied"] and self.optimizer is not None:
                task.report["learning_rate"] = self.rates[0]   # the engine was told none
            self.on_step(task.report)
            self._store()
            self.engine.answer()
        elif task.kind == _engine.EVALUATED:
            self._seed("evaluation", task.report["step"])
            self.on_evaluation(task.report)
            self.engine.answer()
        else:
            raise AssertionError(f"the engine asks for {task.kind} out of turn")

    def _seed(self, what, number):
        """What draws outside of lanes draws the same on every worker."""
        text = f"{what} {self.seed} {number}".encode()
        _seeds.seed_all(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))

    def _apply(self):
        self._check_loop()
        self._seed("apply", self.applied)
        if self.before_apply is not None:
            self.before_apply()
        self.applied += 1   # the schedules count this step
        self.made += 1
        rate = float(self.optimizer.param_groups[0]["lr"])   # a schedule writes into a tensor
        self.is_applying = True
        try:
            self.engine.leave_out()
            self.optimizer.step()
            for scheduler in self.schedulers:
                scheduler.step()
        finally:
            self.is_applying = False
        self._store()
        return rate

    def _store(self):
        for one in self.leaves:
            one.store()
        self._note_rates()

    def _note_rates(self):
        if self.optimizer is not None:
            self.rates = self._rates()

    def _measure(self, task):
        batch = self.batch_of(task)
        modes = [(module, module.training) for module in self.model.modules()]
        self.model.eval()
        try:
            with torch.no_grad(), self.autocast():
                return float(self.metric(batch))
        finally:
            for module, mode in modes:
                module.training = mode


def _refuse_evaluation(evaluate):
    """One that would never come."""
    if evaluate is None:
        return
    others, _, every, *_ = evaluate
    _loader.refuse_stream(others)
    if len(others) == 0:
        raise ValueError("the dataset of `evaluate` has no samples, of which a metric would be the "
                         "mean; give it some, or leave `evaluate` out")
    try:
        operator.index(every)
    except TypeError:
        raise TypeError(f"evaluate=(dataset, metric, every) has {every!r} for `every`, which is a "
                        "number of steps: give a whole number from 1 on") from None
    if every < 1:
        raise ValueError(f"`evaluate` shall come every {every} steps, and would never; give a "
                         "number from 1 on, or leave `evaluate` out")


def _value_of(loss):
    if not isinstance(loss, torch.Tensor):
        raise TypeError(f"job.backward() takes a loss as a tensor, not a {type(loss).__name__}")
    if loss.numel() != 1:
        raise ValueError(f"the loss has the shape {tuple(loss.shape)}; average it over the samples")
    if not loss.requires_grad:
        raise ValueError("the loss does not depend on any parameter that is trained; was it "
                         "detached, or computed without gradients?")
    return loss.detach().float().item()
