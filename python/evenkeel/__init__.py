"""Elastic training that is exact to the last bit, for scripts that own their loop.

    import evenkeel as ek
    job = ek.Job(steps=2000, lanes=8, lane_batch=32, checkpoint_dir="runs/a", save_every=200)
    job.prepare(model, optimizer, dataset)
    for x, y in job:                                  # this worker's lanes
        job.backward(F.cross_entropy(model(x), y))
    print(job.result)
"""
from . import _compiler
from ._checkpoints import load, save
from ._job import Job, Result
from ._own import SGD, AdamW
from ._rerun import AGAIN, Epoch, rerun
from ._samples import records, synthetic_classes, synthetic_text

_compiler.leave_out()

__all__ = ["AGAIN", "AdamW", "Epoch", "Job", "Result", "SGD", "load", "records", "rerun", "save",
           "synthetic_classes", "synthetic_text"]
