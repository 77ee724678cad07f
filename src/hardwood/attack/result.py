"""What an attack found, row by row."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.model.answers import Answers
from hardwood.model.given import Given
from hardwood.threat import Norm


@dataclass(frozen=True, repr=False)
class AttackResult(Answers):
    """Examples that fool a model, row by row.

    Attributes
    ----------
    X_adv : ndarray of shape (n_samples, n_features), or a data frame
        Examples: each lies in the threat and the model itself gives it another label than the true
        one. The row as it is where the model errs without an attack; NaN where no example was
        found. Where the rows came as a data frame, such a frame: rows without an example are as
        they were given.
    distance : ndarray of shape (n_samples,)
        How far ``X_adv`` is from the row, measured on the very floats returned: an upper bound on
        the smallest change. 0 for misclassified rows, ``inf`` where nothing was found.
    success : ndarray of bool, shape (n_samples,)
        Whether a rightly classified row was fooled. With a threat: within its ``eps``.
    status : ndarray of str, shape (n_samples,)
        ``"fooled"``, ``"survived"`` (this attack found nothing; only a certificate proves that
        there is nothing) or ``"misclassified"`` (wrong without an attack, so not attacked).
    lower : ndarray of shape (n_samples,)
        Proven: no smaller change fools the model. 0 where the attack proves nothing.
    n_queries : ndarray of int, shape (n_samples,)
        How often the model was asked for the label of a point, on behalf of the row: once before
        the attack, once for the example, and whatever a black-box attack asks between.
    seconds : float
        Wall time of the whole call.
    method : str
        The attack that ran.
    norm : {"inf", 1, 2, 0}
        How distances are measured.
    """

    X_adv: Any
    distance: FloatArray
    success: BoolArray
    status: npt.NDArray[np.str_]
    lower: FloatArray
    n_queries: npt.NDArray[np.int64]
    seconds: float
    method: str
    norm: Norm
    feature_names: list[str] | None = None
    given: Given | None = field(default=None, compare=False)

    told: ClassVar[tuple[str, ...]] = (
        "status",
        "success",
        "distance",
        "lower",
        "n_queries",
        "method",
    )

    @property
    def attacked_accuracy(self) -> float:
        """Share of rows that are right and were not fooled; never below the truth."""
        return float(np.mean(self.status == "survived"))

    @property
    def mean_distance(self) -> float:
        """Mean distance over the rows that were fooled; NaN if there are none."""
        return float(self.distance[self.success].mean()) if self.success.any() else float("nan")

    def __repr__(self) -> str:
        wrong = np.count_nonzero(self.status == "misclassified")
        return (
            f"AttackResult(method={self.method!r}, n_samples={len(self.status)}, "
            f"norm={self.norm!r}, misclassified={wrong}, "
            f"fooled={np.count_nonzero(self.success)}, mean_distance={self.mean_distance:.4g})"
        )
