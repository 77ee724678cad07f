"""The engine that tries every threshold."""

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.grow.grow import GrownTree
from hardwood.grow.newton import NewtonRules
from hardwood.threat import Reach


class ExactTable:
    """Data sorted once for a whole run of boosting."""

    def __init__(self, X: FloatArray, reach: Reach, *, n_threads: int = 1) -> None:
        self._n_features = X.shape[1]
        self._core = _core.ExactTable(X, reach.ends, n_threads=n_threads)

    def grow(
        self,
        gradient: Float32Array,
        hessian: Float32Array,
        *,
        weight: Float32Array | None = None,
        rows: npt.NDArray[np.uint8] | None = None,
        features: IntArray | None = None,
        monotonic: npt.NDArray[np.int8] | None = None,
        rules: NewtonRules,
        in_place: bool = False,
    ) -> tuple[list[GrownTree], IntArray]:
        """Grow one tree for each column of the derivatives.

        Those of a row are multiplied by its ``weight``. ``rows`` marks the rows to learn from,
        ``features`` lists the features to split on, in order, ``monotonic`` has one sign per
        feature of the table. Also gives the leaf of every row, marked or not, in each tree. Values
        of leaves are not yet shrunk. The gradients stay as they are, also with ``in_place``.
        """
        trees, leaf = self._core.grow(
            gradient,
            hessian,
            np.empty(0, dtype=np.float32) if weight is None else weight,
            np.empty(0, dtype=np.uint8) if rows is None else rows,
            np.arange(self._n_features, dtype=np.int32) if features is None else features,
            np.empty(0, dtype=np.int8) if monotonic is None else monotonic,
            rules.core(),
        )
        return [GrownTree(*arrays) for arrays in trees], np.asarray(leaf)
