"""Trains what a Trainer of Hugging Face's transformers was made for, on any number of workers.

    import evenkeel.hf            # before PyTorch computes anything
    trainer = transformers.Trainer(model, args, train_dataset=..., data_collator=...)
    result = evenkeel.hf.train(trainer, lanes=8)

Promises   the trainer's own loss, data, collator, optimizer and schedule, by the engine's loop: the
           same last line for any number of workers. Afterwards trainer.model is trained.
           A step has per_device_train_batch_size * lanes samples. What the arguments ask for by
           epochs comes after each so many steps as fit into one.
Does not   call the trainer's callbacks, its logging or its saving: the engine logs and saves. What
           of its arguments would change the result, and is not done, is a TypeError by its name;
           what would only be convenient is a warning.
"""
import math
import os
import sys
import warnings

from . import _loader
from ._job import LOAD_AHEAD, Job

# By these accelerate would make a process group of its own, which a replacement could not join. The
# engine has noted them already.
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(name, None)


# Arguments with the values that mean that nothing is asked for, and what to do else.
REFUSED = {
    "fp16": ((False,), "it needs a GradScaler in the trainer's loop; take bf16=True"),
    "load_best_model_at_end": ((False,), "the job ends with its last step; compare the steps' "
                               "evaluations, and ek.load(\"DIR@STEP\") the best"),
    "train_sampling_strategy": (("random",), "the job orders samples itself; take \"random\""),
    "group_by_length": ((False,), "the job orders samples itself; leave it out"),
    "neftune_noise_alpha": ((None, 0), "the trainer's loop adds that noise; add it in the model's "
                            "forward, or leave it out"),
    "use_liger_kernel": ((False,), "it computes other bits; apply its kernels to the model "
                         "yourself, before train()"),
    "deepspeed": ((None, ""), "the job exchanges whole gradients; leave it out"),
    "fsdp": ((None, "", [], False), "the job exchanges whole gradients; leave it out"),
}
LOST = {
    "activation_checkpointing": ((None, False), "call model.activation_checkpointing_enable() "
                                 "yourself"),
    "gradient_checkpointing": ((None, False), "call model.gradient_checkpointing_enable() "
                               "yourself"),
    "torch_compile": ((False,), "the model is trained as it is"),
    "auto_find_batch_size": ((False,), "a batch that does not fit ends the job"),
    "push_to_hub": ((False,), "trainer.push_to_hub() does that afterwards"),
    "resume_from_checkpoint": ((None, False), "the job goes on from the newest checkpoint of its "
                               "own in output_dir, or from resume_from=..."),
    "eval_on_start": ((False,), "the first evaluation is that of eval_steps"),
    "eval_delay": ((None, 0), "the first evaluation is that of eval_steps"),
    "debug": ((None, "", []), "nobody looks for overflows in activations; the job stops at a loss "
              "that is no number"),
    "torch_empty_cache_steps": ((None,), "no cache is emptied"),
    "include_num_input_tokens_seen": ((False, "no"), "nobody counts tokens"),
}
# Methods of a Trainer's subclass that the job's loop takes the place of.
REFUSED_METHODS = ("train", "training_step", "get_batch_samples", "get_train_dataloader",
                   "_get_train_sampler", "_inner_training_loop", "_prepare_inputs",
                   "_prepare_input", "_clip_grad_norm")
LOST_METHODS = ("evaluate", "evaluation_loop", "prediction_step", "get_eval_dataloader", "log",
                "save_model")
KEEP_ALL = 2**31
CALLBACKS = ("DefaultFlowCallback", "PrinterCallback", "ProgressCallback",
             "NotebookProgressCallback")


def train(trainer, *, lanes=None, **options):
    """The job's result. `lanes`: by default gradient_accumulation_steps; give at least as many as
    there will be workers. `options`: those of ek.Job, which win over what the trainer's arguments
    say."""
    args = trainer.args
    _refuse(trainer)
    lanes = args.gradient_accumulation_steps if lanes is None else lanes
    _loader.refuse_stream(trainer.train_dataset)
    steps = options.get("steps")
    job = Job(**(_options_of(args, len(trainer.train_dataset), lanes, options.get("lane_batch"),
                             steps) | {"lanes": lanes} | options))
    trainer.is_in_train = True
    try:
        return _trained(job, trainer, is_by_epochs=steps is None and args.max_steps <= 0)
    finally:
        trainer.is_in_train = False


def _trained(job, trainer, is_by_epochs):
    args = trainer.args
    samples = max(1, len(trainer.train_dataset))   # of none, the job says so
    steps, step_samples = job.config["steps"], job.config["lane_batch"] * job.config["lanes"]
    trainer.model.to(job.config["device"])   # the trainer's own choice is the first GPU
    _align_special_tokens(trainer)
    if getattr(trainer, "_created_lr_scheduler", False):   # that of an earlier training has ended
        trainer.lr_scheduler, trainer._created_lr_scheduler = None, False
    trainer.create_optimizer_and_scheduler(num_training_steps=steps)
    model = trainer.model.train()
    dataset, collate_fn = _data_of(trainer, "training")
    trainer.state.max_steps = steps
    trainer.state.num_train_epochs = math.ceil(
        args.num_train_epochs if is_by_epochs else steps * step_samples / samples)

    def tell(_=None):
        trainer.state.global_step = job._program.applied
        # The data advance with a step that is skipped, too.
        trainer.state.epoch = job._program.made * step_samples / samples

    def loss_of(inputs):
        tell()   # of a job that goes on, or a worker that came later, nobody else tells the trainer
        return trainer.compute_loss(model, inputs)

    job.prepare(model, trainer.optimizer, dataset, collate_fn=collate_fn,
                schedulers=[trainer.lr_scheduler], num_workers=args.dataloader_num_workers,
                evaluate=_evaluation_of(trainer, loss_of, steps,
                                        _steps_per_epoch(step_samples, samples)),
                on_step=tell)
    result = job.fit(loss_of)
    tell()   # the end may be the first that this worker hears of the state
    return result


def _align_special_tokens(trainer):
    """What Trainer.train() begins with: the model's pad, begin and end are those of the tokenizer.
    Versions of transformers have a function for it, a method, or nothing."""
    library = vars(sys.modules["transformers.trainer"])
    kinds = tuple(library[name] for name in ("PreTrainedTokenizerBase", "ProcessorMixin")
                  if name in library)
    given = getattr(trainer, "processing_class", None)
    if not isinstance(given, kinds) or not hasattr(trainer.model, "config"):
        return
    if "align_special_tokens" in library:
        library["align_special_tokens"](trainer.model, given)
    elif hasattr(trainer, "_align_special_tokens"):
        trainer._align_special_tokens()


def _refuse(trainer):
    args, evaluates = trainer.args, _strategy(trainer.args.eval_strategy) != "no"
    for name, (nothing, cure) in REFUSED.items():
        if getattr(args, name, nothing[0]) not in nothing:
            raise TypeError(f"{name}={getattr(args, name)!r} would not be done here: {cure}")
    if _strategy(args.save_strategy) == "best":
        raise TypeError("save_strategy=\"best\" would not be done here: take \"steps\", and "
                        "ek.load(\"DIR@STEP\") the best")
    if _strategy(args.lr_scheduler_type) in ("reduce_lr_on_plateau", "greedy"):
        raise TypeError(f"lr_scheduler_type={_strategy(args.lr_scheduler_type)!r} would not be "
                        "done here: a schedule that follows a metric is not exact when a worker "
                        "dies; take one that follows the steps, such as \"cosine\"")
    if evaluates and isinstance(trainer.eval_dataset, dict):
        raise TypeError(f"eval_dataset has {len(trainer.eval_dataset)} datasets, and a job "
                        "evaluates one; give that, and evaluate others afterwards")
    base = next(one for one in type(trainer).__mro__ if one.__module__ == "transformers.trainer")
    changed = [name for name in (*REFUSED_METHODS, *LOST_METHODS)
               if hasattr(base, name) and getattr(type(trainer), name) is not getattr(base, name)]
    for name in changed:
        if name in REFUSED_METHODS:
            cure = "The job clips by max_grad_norm" if name == "_clip_grad_norm" else \
                "What it changes belongs into compute_loss(), the dataset or the collator"
            raise TypeError(f"{type(trainer).__name__}.{name}() would not be called: the job has "
                            f"the loop. {cure}")
    lost = [f"{name}={getattr(args, name)!r}: {cure}" for name, (nothing, cure) in LOST.items()
            if getattr(args, name, nothing[0]) not in nothing]
    lost += [f"{type(trainer).__name__}.{name}() is not called" for name in changed]
    lost += _callbacks_of(trainer)
    if evaluates and trainer.compute_metrics is not None:
        lost.append("compute_metrics: an evaluation tells the loss; trainer.evaluate() afterwards "
                    "tells the rest")
    for what in lost:
        warnings.warn(f"evenkeel.hf.train() leaves out {what}", stacklevel=3)


def _callbacks_of(trainer):
    found = [type(one).__name__ for one in trainer.callback_handler.callbacks]
    if "EarlyStoppingCallback" in found:
        raise TypeError("EarlyStoppingCallback would not be called here, and the training would "
                        "be longer than you mean: remove it, and give max_steps")
    return [f"{name}, which is not called" for name in found if name not in CALLBACKS]


def _options_of(args, samples, lanes, lane_batch=None, steps=None):
    """`steps`: the job's, if it is given them; they win, also where a number is a part of all."""
    batch = lane_batch or args.per_device_train_batch_size
    epoch = _steps_per_epoch(batch * lanes, samples)
    if steps is None:
        steps = args.max_steps if args.max_steps > 0 else \
            math.ceil(args.num_train_epochs * samples / (batch * lanes))
    options = {"steps": steps, "lane_batch": batch,
               "seed": args.seed if args.data_seed is None else args.data_seed,
               "log_every": _every(args.logging_strategy, args.logging_steps, steps, epoch) or 0}
    if args.dataloader_num_workers > LOAD_AHEAD:
        options["load_ahead"] = args.dataloader_num_workers   # so that none of them is idle
    if args.device.type == "cuda":   # of this worker, which need not be the trainer's
        options["device"] = "cuda"
    if args.max_grad_norm:
        options["clip_norm"] = args.max_grad_norm
    if args.bf16:
        options["precision"] = "bf16"
    save_every = _every(args.save_strategy, args.save_steps, steps, epoch)
    if save_every and args.output_dir:
        options |= {"checkpoint_dir": args.output_dir, "save_every": save_every,
                    "keep": args.save_total_limit or KEEP_ALL}
    return options


def _strategy(given):
    return getattr(given, "value", given)


def _steps_per_epoch(batch, samples):
    return max(1, samples // batch)


def _every(strategy, number, steps, epoch):
    """Steps from one time to the next, or None. A number below 1 is a part of all steps."""
    if _strategy(strategy) == "epoch":
        return epoch
    if _strategy(strategy) == "no" or not number:
        return None
    return int(number) if number >= 1 else math.ceil(number * steps)


def _data_of(trainer, what, dataset=None):
    """A dataset and its collate_fn, without the columns that the model does not take."""
    dataset = trainer.train_dataset if dataset is None else dataset
    if hasattr(dataset, "column_names"):
        return trainer._remove_unused_columns(dataset, description=what), trainer.data_collator
    return dataset, trainer._get_collator_with_removed_columns(trainer.data_collator,
                                                               description=what)


def _evaluation_of(trainer, loss_of, steps, epoch):
    every = _every(trainer.args.eval_strategy, trainer.args.eval_steps, steps, epoch)
    if trainer.eval_dataset is None or every is None:
        return None
    dataset, collate_fn = _data_of(trainer, "evaluation", trainer.eval_dataset)
    return dataset, loss_of, every, collate_fn
