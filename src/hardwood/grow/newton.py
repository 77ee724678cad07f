"""How a boosted tree is grown, whichever engine grows it."""

from dataclasses import dataclass

from hardwood.grow.grow import Inner


@dataclass(frozen=True)
class NewtonRules:
    """What a boosted tree must respect, and how its splits are judged; see `newton.hpp`."""

    inner: Inner = "paper"
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    min_split_gain: float = 0.0
    min_child_weight: float = 1.0
    min_samples_leaf: int = 1
    max_depth: int = 6  # -1: no limit
    max_leaf_nodes: int = 0  # 0: no limit
    n_threads: int = 1
    seed: int = 0
