"""Answers about robustness: always two sides, what is proven and what was found."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.threat import Norm, Threat

StatusArray = npt.NDArray[np.str_]


@dataclass(frozen=True, repr=False)
class DistanceResult:
    """The smallest change that fools the model, row by row.

    Attributes
    ----------
    lower : ndarray of shape (n_samples,)
        Proven: no change smaller than this fools the model. ``inf`` where no change does.
    upper : ndarray of shape (n_samples,)
        Found: the distance of ``X_adv``, never below the truth. ``inf`` where there is no example.
    status : ndarray of str, shape (n_samples,)
        ``"exact"`` (lower equals upper), ``"unknown"`` (stopped between them) or
        ``"misclassified"`` (wrong without an attack: distance 0).
    reason : ndarray of str, shape (n_samples,)
        Why a row is unknown or misclassified; empty where the answer is exact.
    X_adv : ndarray of shape (n_samples, n_features)
        Examples, replayed through the model; a row of NaN where there is none.
    norm : {"inf", 1, 2, 0}
        How distances are measured.
    """

    lower: FloatArray
    upper: FloatArray
    status: StatusArray
    reason: StatusArray
    X_adv: FloatArray
    norm: Norm

    def __repr__(self) -> str:
        attacked = self.status != "misclassified"
        mean = f"{self.upper[attacked].mean():.4g}" if attacked.any() else "none"
        return (
            f"DistanceResult(n_samples={len(self.status)}, norm={self.norm!r}, "
            f"misclassified={np.count_nonzero(~attacked)}, "
            f"unknown={np.count_nonzero(self.status == 'unknown')}, mean_upper={mean})"
        )


@dataclass(frozen=True, repr=False)
class Certificate:
    """Which rows keep their right label whatever the threat does.

    Attributes
    ----------
    status : ndarray of str, shape (n_samples,)
        ``"certified"`` (proven: no point of the threat changes the label), ``"broken"`` (found: an
        example, or the row is wrong without an attack) or ``"unknown"``.
    reason : ndarray of str, shape (n_samples,)
        ``"misclassified"`` where a row is broken without an attack, why a row is unknown, else
        empty.
    X_adv : ndarray of shape (n_samples, n_features)
        Examples of broken rows, replayed through the model; a row of NaN elsewhere.
    threat : Threat
        What was certified against.
    """

    status: StatusArray
    reason: StatusArray
    X_adv: FloatArray
    threat: Threat

    @property
    def certified_accuracy(self) -> float:
        """Share of rows proven right under the threat; never above the truth."""
        return float(np.mean(self.status == "certified"))

    @property
    def attacked_accuracy(self) -> float:
        """Share of rows for which no example is known; never below the truth."""
        return float(np.mean(self.status != "broken"))

    def __repr__(self) -> str:
        return (
            f"Certificate(n_samples={len(self.status)}, threat={self.threat!r}, "
            f"certified_accuracy={self.certified_accuracy:.4g}, "
            f"attacked_accuracy={self.attacked_accuracy:.4g})"
        )
