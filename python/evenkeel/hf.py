"""Trains what a Trainer of Hugging Face's transformers was made for, on any number of workers.

    import evenkeel.hf            # before PyTorch computes anything
    trainer = transformers.Trainer(model, args, train_dataset=..., data_collator=...)
    result = evenkeel.hf.train(trainer, lanes=8)

Promises   the trainer's own loss, data, collator, optimizer and schedule, by the engine's loop: the
           same last line for any number of workers. Afterwards trainer.model is trained.
           A step has per_device_train_batch_size * lanes samples.
Does not   call the trainer's callbacks, its logging or its saving: the engine logs and saves.
"""
import math
import os

from ._job import Job

# By these accelerate would make a process group of its own, which a replacement could not join. The
# engine has noted them already.
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
    os.environ.pop(name, None)


def train(trainer, *, lanes=None, **options):
    """The job's result. `lanes`: by default gradient_accumulation_steps; give at least as many as
    there will be workers. `options`: those of ek.Job, which win over what the trainer's arguments
    say."""
    args = trainer.args
    if args.fp16:
        raise TypeError("fp16 needs a GradScaler in the trainer's loop; take bf16=True")
    lanes = args.gradient_accumulation_steps if lanes is None else lanes
    samples = len(trainer.train_dataset)
    job = Job(**(_options_of(args, samples, lanes) | {"lanes": lanes} | options))
    steps = job.config["steps"]
    trainer.create_optimizer_and_scheduler(num_training_steps=steps)
    model = trainer.model.train()
    dataset, collate_fn = _data_of(trainer, "training")
    job.prepare(model, trainer.optimizer, dataset, collate_fn=collate_fn,
                schedulers=[trainer.lr_scheduler], num_workers=args.dataloader_num_workers,
                evaluate=_evaluation_of(trainer, model),
                on_step=lambda report: setattr(trainer.state, "global_step", report["step"]))
    return job.fit(lambda inputs: trainer.compute_loss(model, inputs))


def _options_of(args, samples, lanes):
    batch = args.per_device_train_batch_size
    steps = args.max_steps if args.max_steps > 0 else \
        math.ceil(args.num_train_epochs * samples / (batch * lanes))
    options = {"steps": steps, "lane_batch": batch,
               "seed": args.seed if args.data_seed is None else args.data_seed,
               "log_every": int(args.logging_steps) if args.logging_steps >= 1 else None}
    if args.max_grad_norm:
        options["clip_norm"] = args.max_grad_norm
    if args.bf16:
        options["precision"] = "bf16"
    if _is_on(args.save_strategy) and args.output_dir:
        options["checkpoint_dir"] = args.output_dir
        if args.save_steps >= 1:
            options["save_every"] = int(args.save_steps)
    return options


def _is_on(strategy):
    return getattr(strategy, "value", strategy) != "no"


def _data_of(trainer, what, dataset=None):
    """A dataset and its collate_fn, without the columns that the model does not take."""
    dataset = trainer.train_dataset if dataset is None else dataset
    if hasattr(dataset, "column_names"):
        return trainer._remove_unused_columns(dataset, description=what), trainer.data_collator
    return dataset, trainer._get_collator_with_removed_columns(trainer.data_collator,
                                                               description=what)


def _evaluation_of(trainer, model):
    every = trainer.args.eval_steps
    if trainer.eval_dataset is None or not _is_on(trainer.args.eval_strategy) or not every:
        return None
    dataset, _ = _data_of(trainer, "evaluation", trainer.eval_dataset)
    return dataset, lambda inputs: trainer.compute_loss(model, inputs), int(every)
