"""The engine's own optimizers, fused, by their settings. The rate is the job's `lr`, and follows
its `schedule`."""
import dataclasses


class Own:
    """What the engine makes of its settings."""
    name = ""

    def settings(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass
class AdamW(Own):
    """`spare_vectors`: tensors of fewer than two dimensions do not decay; nor do those with
    `spare_names`, patterns with '*' and '?' for whole names."""
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01
    spare_vectors: bool = True
    spare_names: list = dataclasses.field(default_factory=list)
    name = "adamw"


@dataclasses.dataclass
class SGD(Own):
    """`spare_vectors` and `spare_names`: as for AdamW."""
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    spare_vectors: bool = True
    spare_names: list = dataclasses.field(default_factory=list)
    name = "sgd"
