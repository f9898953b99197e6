# The types of evenkeel.hf.train(), for editors and checkers; what they mean is in the source.
from typing import Any

from . import Result

def train(trainer: Any, *, lanes: int | None = ..., **options: Any) -> Result: ...
