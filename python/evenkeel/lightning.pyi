# The types of evenkeel.lightning.fit(), for editors and checkers; what they mean is in the source.
from collections.abc import Callable, Iterable
from typing import Any

from . import Result

def fit(
    module: Any,
    data: Any = ...,
    *,
    validation: Any = ...,
    monitor: str | None = ...,
    epochs: float | None = ...,
    evaluate_every: int | None = ...,
    leave_out: Iterable[str] = ...,
    on_step: Callable[[dict[str, Any]], object] | None = ...,
    on_evaluation: Callable[[dict[str, Any]], object] | None = ...,
    **options: Any,
) -> Result: ...
