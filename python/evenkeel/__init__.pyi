# The types of the public names, for editors and checkers; what they mean is in the sources.
import dataclasses
import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils.data import TensorDataset

__all__ = ["AGAIN", "AdamW", "Epoch", "Job", "Result", "SGD", "load", "records", "rerun", "save",
           "synthetic_classes", "synthetic_text"]

AGAIN: Any

_Path = str | os.PathLike[str]
_Setting = bool | int | float | str

class Result:
    step: int
    trail: str
    digest: str
    def __init__(self, line: str) -> None: ...

class _Own:
    name: str
    def settings(self) -> dict[str, Any]: ...

@dataclasses.dataclass
class AdamW(_Own):
    beta1: float = ...
    beta2: float = ...
    eps: float = ...
    weight_decay: float = ...
    spare_vectors: bool = ...
    spare_names: list[str] = ...

@dataclasses.dataclass
class SGD(_Own):
    momentum: float = ...
    nesterov: bool = ...
    weight_decay: float = ...
    spare_vectors: bool = ...
    spare_names: list[str] = ...

class Job:
    settings: dict[str, Any]
    config: dict[str, Any]
    result: Result | None
    def __init__(
        self,
        *,
        settings: Mapping[str, _Setting] | None = ...,
        # The options. None is as if it were not given.
        config: _Path | None = ...,
        steps: int | None = ...,
        lanes: int | None = ...,
        lane_batch: int | None = ...,
        seed: int | None = ...,
        lr: float | None = ...,
        schedule: str | None = ...,
        clip_norm: float | None = ...,
        non_finite: Literal["stop", "skip"] | None = ...,
        precision: Literal["fp32", "bf16", "fp16"] | None = ...,
        device: str | None = ...,
        numerics: Literal["portable", "native"] | None = ...,
        threads: int | None = ...,
        reduce: Literal["tree", "allreduce"] | None = ...,
        lane_placement: Literal["auto", "even"] | None = ...,
        joins: Literal["beside", "wait"] | None = ...,
        recheck_every: int | Literal["auto"] | None = ...,
        on_corruption: Literal["stop", "continue"] | None = ...,
        evidence_dir: _Path | None = ...,
        load_threads: int | None = ...,
        load_ahead: int | None = ...,
        read_memory_from: int | str | None = ...,
        log_every: int | None = ...,
        log_jsonl: _Path | None = ...,
        tensorboard: _Path | None = ...,
        progress: Literal["auto", "yes", "no"] | None = ...,
        checkpoint_dir: _Path | None = ...,
        checkpoint_mirror: _Path | None = ...,
        checkpoint_unguarded: bool | None = ...,
        save_every: int | None = ...,
        save_minutes: float | None = ...,
        keep: int | None = ...,
        keep_every: int | None = ...,
        codec: Literal["planes", "zstd", "none"] | None = ...,
        resume_from: _Path | None = ...,
        no_resume: bool | None = ...,
        init_from: _Path | None = ...,
        strict: bool | None = ...,
        allow_inexact: bool | None = ...,
    ) -> None: ...
    @classmethod
    def from_args(
        cls,
        arguments: Sequence[str] | None = ...,
        *,
        settings: Mapping[str, _Setting] | None = ...,
        **defaults: Any,
    ) -> Job: ...
    def register(self, name: str, thing: Any) -> None: ...
    def prepare(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | AdamW | SGD,
        dataset: Any,
        *,
        schedulers: Iterable[Any] = ...,
        collate_fn: Callable[[list[Any]], Any] | None = ...,
        num_workers: int = ...,
        evaluate: (
            tuple[Any, Callable[[Any], float | torch.Tensor], int]
            | tuple[Any, Callable[[Any], float | torch.Tensor], int,
                    Callable[[list[Any]], Any] | None]
            | None
        ) = ...,
        on_step: Callable[[dict[str, Any]], object] | None = ...,
        on_evaluation: Callable[[dict[str, Any]], object] | None = ...,
        before_apply: Callable[[], object] | None = ...,
        data: str = ...,
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def backward(self, loss: torch.Tensor) -> None: ...
    def fit(self, loss_of: Callable[[Any], torch.Tensor]) -> Result: ...

class Epoch:
    number: int
    rank: int
    world: int
    local_rank: int
    reason: str
    deadline: float | None
    joins: bool
    stops: bool
    def __init__(self, number: int, rank: int, world: int, reason: str) -> None: ...

def rerun(
    function: Callable[..., Any] | None = ...,
    *,
    backend: str | None = ...,
    timeout: datetime.timedelta = ...,
    join_within: float = ...,
) -> Callable[..., Any]: ...
def load(path: _Path, only: str | Iterable[str] | None = ...) -> dict[str, torch.Tensor]: ...
def save(state: Mapping[str, torch.Tensor], path: _Path, replace: bool = ...) -> None: ...
def records(path: _Path, data: str = ..., target: str = ...) -> TensorDataset: ...
def synthetic_classes(
    samples: int = ..., shape: Sequence[int] = ..., classes: int = ..., seed: int = ...
) -> TensorDataset: ...
def synthetic_text(
    samples: int = ..., length: int = ..., vocabulary: int = ..., seed: int = ...
) -> TensorDataset: ...
