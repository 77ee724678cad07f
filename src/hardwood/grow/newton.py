"""How a boosted tree is grown, whichever engine grows it."""

from dataclasses import dataclass

from hardwood import _core
from hardwood.grow.grow import Inner


@dataclass(frozen=True)
class NewtonRules:
    """What a boosted tree must respect, and how its splits are judged; see `newton.hpp`."""

    inner: Inner = "paper"
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    min_split_gain: float = 0.0
    min_child_weight: float = 1.0
    max_step: float = 0.0  # largest value of a leaf; 0: no limit
    min_samples_leaf: int = 1
    max_depth: int = 6  # -1: no limit
    max_leaf_nodes: int = 0  # 0: no limit
    n_threads: int = 1
    seed: int = 0

    def core(self) -> _core.NewtonRules:
        """The same for the kernels, without the seed, which only rounding to a grid needs."""
        return _core.NewtonRules(
            inner=getattr(_core.Inner, self.inner),
            reg_lambda=self.reg_lambda,
            reg_alpha=self.reg_alpha,
            min_split_gain=self.min_split_gain,
            min_child_weight=self.min_child_weight,
            max_step=self.max_step,
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            n_threads=self.n_threads,
        )
