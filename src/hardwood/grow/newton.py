"""How a boosted tree is grown, whichever engine grows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hardwood import _core
from hardwood.grow.rules import Inner, TreeRules


@dataclass(frozen=True)
class NewtonRules(TreeRules):
    """What a boosted tree must respect, and how its splits are judged; see `newton.hpp`."""

    inner: Inner = "paper"
    max_depth: int = 6
    reg_lambda: float = 1.0
    reg_alpha: float = 0.0
    min_child_weight: float = 1.0
    max_delta_step: float = 0.0  # largest value of a leaf; 0: no limit
    least_gain: float = 5e-7  # what gains no more is rounding noise; in the unit of the loss

    LENIENT: ClassVar[Mapping[str, Any]] = {  # what forbids no split
        "min_child_weight": 0.0,
        "min_samples_leaf": 1,
        "min_split_gain": 0.0,
        "reg_alpha": 0.0,
    }

    def core(self) -> _core.NewtonRules:
        """The same for the kernels."""
        core = _core.NewtonRules()
        self._fill(core)
        return core
