"""What a job refuses by name, since it cannot be exact, or since the job does it itself.

Promises   each refusal says what to do instead. Nothing is imported that the script has not.
Does not   know of optimizers (_optimizer.py) or of datasets (_loader.py).
"""
import functools
import inspect
import sys
import weakref

import torch

from . import _compiler

_jobs = weakref.WeakSet()   # all that were prepared


def refuse_model(model, numerics):
    for name, module in model.named_modules():
        what = f"the model's '{name}'" if name else "the model"
        wrapper = _wrapper_of(module)
        if wrapper is not None:
            raise TypeError(f"{what} is wrapped in {wrapper}; give the module itself, the job "
                            "exchanges the gradients")
        if numerics == "portable" and _compiler.is_imported() and _is_compiled(module):
            raise TypeError(f"{what} is compiled, and computes other bits on other CPUs: take "
                            "numerics=\"native\", and hosts of one kind, or leave out compile()")
        if _makes_sparse_gradients(module):
            raise TypeError(f"{what} makes sparse gradients, which are not exchanged: make it with "
                            "sparse=False")
    for name, one in model.named_parameters():
        if _is_one_of(one, "torch.distributed.tensor", "DTensor"):
            raise TypeError(f"the model's '{name}' is a DTensor, of which each process has a part; "
                            "give the module as it was before fully_shard() or distribute_tensor()")


def refuse_schedule(scheduler):
    needs = [one.name for one in inspect.signature(scheduler.step).parameters.values()
             if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    if needs:
        raise TypeError(f"{type(scheduler).__name__}.step() wants `{needs[0]}`: a schedule that "
                        "follows a metric is not exact when a worker dies; take one that follows "
                        "the steps, such as CosineAnnealingLR")


def refuse_rate(options, config, optimizer):
    """`options`: the words of those that were given. An `lr` that the optimizer has is none that
    would be left out."""
    rates = {float(group[key]) for group in optimizer.param_groups for key in ("lr", "initial_lr")
             if key in group}
    for name, value, default, is_followed in (
            ("lr", config["learning_rate"], 1e-3, config["learning_rate"] in rates),
            ("schedule", config["schedule"], "constant", False)):
        is_given = any(word == f"--{name}" or word.startswith(f"--{name}=") for word in options)
        if (is_given or value != default) and not is_followed:
            raise TypeError(f"the job's {name}={value!r} would do nothing: the rate is that of the "
                            "optimizer, and of job.prepare(schedulers=...); `lr` and `schedule` "
                            "are for ek.AdamW() and ek.SGD()")


def refuse_registered(name, thing):
    if isinstance(thing, torch.optim.Optimizer):
        raise TypeError(f"'{name}' is an optimizer: give the one that trains the model to "
                        "job.prepare(model, optimizer, ...), which keeps its state; a job has no "
                        "second one")
    if isinstance(thing, torch.amp.GradScaler) and thing.is_enabled():
        raise TypeError(f"'{name}' is a GradScaler: {_SCALER}")
    if not (hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")):
        raise TypeError(f"'{name}' is a {type(thing).__name__}, which has no state_dict() and "
                        f"load_state_dict()")


_SCALER = ("it multiplies the loss, and leaves steps out by what one worker sees; leave it out, "
           "and take the job's precision=\"bf16\", which needs none")


_CLIPPED = ("gradients were clipped or measured in the loop, where they are one worker's, and "
            "being added up: do that in before_apply, which is called when they are complete, or "
            "clip by the job's clip_norm")


def watch_loop(job):
    """From now on a GradScaler that is enabled refuses to scale a loss between a batch of the job
    and its backward, for the job would take the product for the loss; and what clips gradients
    refuses those of the job, but in its callbacks."""
    _jobs.add(job)
    _guard(torch.amp.GradScaler, "scale", _refuse_scaler)
    # All that clip look it up when they are called, under whatever name a script has imported them.
    _guard(sys.modules["torch.nn.utils.clip_grad"], "_group_tensors_by_device_and_dtype",
           _refuse_clipping)
    _guard(torch.optim.Optimizer, "zero_grad", _refuse_zeroing)
    _guard(torch.nn.Module, "zero_grad", _refuse_zeroing)


def _refuse_scaler(scaler, *_, **__):
    if scaler.is_enabled() and any(job._is_in_lane() for job in _jobs):
        raise RuntimeError(f"a GradScaler in the loop of a job: {_SCALER}")


def _refuse_clipping(lists, *_, **__):
    if any(job._keeps_gradients(lists[0]) for job in _jobs):
        raise RuntimeError(_CLIPPED)


def _refuse_zeroing(owner, *_, **__):
    groups = getattr(owner, "param_groups", None)
    of_owner = owner.parameters() if groups is None else (
        one for group in groups for one in group["params"])
    known = set(map(id, of_owner))
    if any(job._is_behind_backward(known) for job in _jobs):
        raise RuntimeError("behind job.backward() gradients are being added up; leave zero_grad() "
                           "out of the loop, the job does that")


def _guard(owner, name, refuse):
    """Has `refuse` look at the arguments of each call of owner.name first."""
    function = getattr(owner, name, None)
    if function is None or hasattr(function, "of_evenkeel"):
        return

    @functools.wraps(function)
    def guarded(*arguments, **named):
        refuse(*arguments, **named)
        return function(*arguments, **named)

    guarded.of_evenkeel = True
    setattr(owner, name, guarded)


def _wrapper_of(module):
    if isinstance(module, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        return type(module).__name__
    for name in ("FullyShardedDataParallel", "FSDPModule"):
        if _is_one_of(module, "torch.distributed.fsdp", name):
            return name
    return None


def _makes_sparse_gradients(module):
    return (isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse
            and module.weight.requires_grad)


def _is_one_of(thing, where, name):
    kind = getattr(sys.modules.get(where), name, None)
    return kind is not None and isinstance(thing, kind)


def _is_compiled(module):
    """Whether torch.compile() was given it, or compile() called of it."""
    # What torch.compiler.disable() wraps has such an attribute, too.
    marks = [getattr(one, "__dict__", {}) for one in (*vars(module).values(), type(module).forward)
             if not isinstance(one, type)]
    return (isinstance(module, torch._dynamo.OptimizedModule)
            or module._compiled_call_impl is not None
            or any("_torchdynamo_orig_callable" in one and "_torchdynamo_disable" not in one
                   for one in marks))
