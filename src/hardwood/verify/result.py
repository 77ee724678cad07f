"""Answers about robustness: always two sides, what is proven and what was found."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray, IntArray
from hardwood.model.answers import Answers, frame_of
from hardwood.model.given import Given
from hardwood.threat import Norm, Threat

StatusArray = npt.NDArray[np.str_]


@dataclass(frozen=True, repr=False)
class DistanceResult(Answers):
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
    X_adv : ndarray of shape (n_samples, n_features), or a data frame
        Examples, replayed through the model; a row of NaN where there is none. Where the rows came
        as a data frame, such a frame: rows without an example are as they were given.
    norm : {"inf", 1, 2, 0}
        How distances are measured.
    """

    lower: FloatArray
    upper: FloatArray
    status: StatusArray
    reason: StatusArray
    X_adv: Any
    norm: Norm
    given: Given | None = field(default=None, compare=False)

    told: ClassVar[tuple[str, ...]] = ("status", "lower", "upper", "reason")

    def __repr__(self) -> str:
        attacked = self.status != "misclassified"
        mean = f"{self.upper[attacked].mean():.4g}" if attacked.any() else "none"
        return (
            f"DistanceResult(n_samples={len(self.status)}, norm={self.norm!r}, "
            f"misclassified={np.count_nonzero(~attacked)}, "
            f"unknown={np.count_nonzero(self.status == 'unknown')}, mean_upper={mean})"
        )


@dataclass(frozen=True, repr=False)
class Certificate(Answers):
    """Which rows keep their right label whatever the threat does.

    Attributes
    ----------
    status : ndarray of str, shape (n_samples,)
        ``"certified"`` (proven: no point of the threat changes the label), ``"broken"`` (found: an
        example, or the row is wrong without an attack) or ``"unknown"``.
    reason : ndarray of str, shape (n_samples,)
        ``"misclassified"`` where a row is broken without an attack, why a row is unknown, else
        empty.
    X_adv : ndarray of shape (n_samples, n_features), or a data frame
        Examples of broken rows, replayed through the model; a row of NaN elsewhere. Where the rows
        came as a data frame, such a frame: rows without an example are as they were given.
    threat : Threat
        What was certified against.
    y, y_adv : ndarray of int, shape (n_samples,)
        Positions in `classes` of the true labels, and of the examples' labels (-1: no example).
    classes : ndarray
        The labels.
    """

    status: StatusArray
    reason: StatusArray
    X_adv: Any
    threat: Threat
    y: IntArray | None = None
    y_adv: IntArray | None = None
    classes: npt.NDArray[Any] | None = None
    given: Given | None = field(default=None, compare=False)

    told: ClassVar[tuple[str, ...]] = ("status", "reason")

    @property
    def certified_accuracy(self) -> float:
        """Share of rows proven right under the threat; never above the truth."""
        return float(np.mean(self.status == "certified"))

    @property
    def attacked_accuracy(self) -> float:
        """Share of rows for which no example is known; never below the truth."""
        return float(np.mean(self.status != "broken"))

    @property
    def majority_share(self) -> float:
        """Share of the most frequent label: what a constant answer gets right."""
        return float(np.bincount(self._labels()).max() / len(self.status))

    @property
    def certified_balanced_accuracy(self) -> float:
        """Mean over the classes of the share of their rows that is proven right."""
        return float(np.mean(self._recalls(self.status == "certified")))

    @property
    def attacked_balanced_accuracy(self) -> float:
        """Mean over the classes of the share of their rows for which no example is known."""
        return float(np.mean(self._recalls(self.status != "broken")))

    def by_class(self) -> Any:
        """Tell the classes apart: a model can be safe for one and open for another.

        Returns
        -------
        pandas.DataFrame
            One line a class: counts of its rows (``n``, ``certified``, ``broken``, ``unknown``);
            ``recall``: the share of its rows that stay right; ``precision``: of the rows that end
            with its label, the share that has it; ``specificity``: the share of other rows that do
            not end with its label. Each is told twice: ``certified_`` (proven, never above the
            truth, if every row is attacked to be wrong) and ``attacked_`` (never below it). The
            last line has sums of the counts and means of the shares; its recalls are balanced
            accuracies.
        """
        y, classes = self._labels(), self.classes
        assert classes is not None
        assert self.y_adv is not None
        proven, open_ = self.status == "certified", self.status != "broken"
        lines: dict[str, list[float]] = {}
        for k in range(len(classes)):
            own, stolen = y == k, (y != k) & (self.y_adv == k)
            n, n_others = int(own.sum()), int((~own).sum())
            might = int((~own & ~proven).sum())  # could end with this label
            line = {
                "n": n,
                "certified": int((own & proven).sum()),
                "broken": int((own & ~open_).sum()),
                "unknown": int((own & open_ & ~proven).sum()),
                "certified_recall": _share((own & proven).sum(), n),
                "attacked_recall": _share((own & open_).sum(), n),
                "certified_precision": _share((own & proven).sum(), (own & proven).sum() + might),
                "attacked_precision": _share(
                    (own & open_).sum(), (own & open_).sum() + stolen.sum()
                ),
                "certified_specificity": _share((~own & proven).sum(), n_others),
                "attacked_specificity": _share(n_others - stolen.sum(), n_others),
            }
            for name, value in line.items():
                lines.setdefault(name, []).append(value)
        for name, values in lines.items():
            counts = name in ("n", "certified", "broken", "unknown")
            seen = [value for value in values if value == value]
            values.append(sum(values) if counts else float(np.mean(seen)) if seen else np.nan)
        frame = frame_of(lines)
        frame.index = [*classes.tolist(), "all"]
        return frame

    def _labels(self) -> IntArray:
        if self.y is None:
            raise ValueError("This certificate does not know the labels of its rows.")
        return self.y

    def _recalls(self, right: BoolArray) -> list[float]:
        y = self._labels()
        return [float(right[y == k].mean()) for k in np.unique(y)]

    def __repr__(self) -> str:
        majority = "" if self.y is None else f", majority_share={self.majority_share:.4g}"
        return (
            f"Certificate(n_samples={len(self.status)}, threat={self.threat!r}, "
            f"certified_accuracy={self.certified_accuracy:.4g}, "
            f"attacked_accuracy={self.attacked_accuracy:.4g}{majority})"
        )


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")
