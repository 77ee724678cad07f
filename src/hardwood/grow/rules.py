"""What every tree must respect, whatever judges its splits."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from hardwood import _core

Inner = Literal["exact", "paper"]


@dataclass(frozen=True)
class TreeRules:
    """Counts are absolute; 0 or -1 means no limit. The names are those of the kernels' rules."""

    inner: Inner = "exact"
    min_split_gain: float = 0.0
    min_samples_leaf: int = 1
    min_samples_split: int = 2
    max_depth: int = -1
    max_leaf_nodes: int = 0
    max_features: int = 0  # drawn for each node
    seed: int = 0  # for these draws and for the rounding of gradients
    n_threads: int = 1

    _enums: ClassVar[dict[str, Any]] = {
        "inner": _core.Inner,
        "impurity": _core.Impurity,
        "candidates": _core.Candidates,
    }

    def _fill(self, core: Any) -> None:
        """Give the kernels' rules the same values, enums by their names."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in self._enums:
                value = getattr(self._enums[field.name], value)
            setattr(core, field.name, value)
