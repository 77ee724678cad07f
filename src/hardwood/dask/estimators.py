"""The estimators, fitted on Dask's collections."""

from typing import Any

import hardwood.estimators.boosting as boosting
import hardwood.estimators.forest as forest
from hardwood.dask.cluster import Cluster, fit_on
from hardwood.dask.collections import pieces


def _fit(
    self: Any, local: type, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, options: Any
) -> Any:
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val belong together; pass both or none.")
    estimator = local(**self.get_params(deep=False))
    held = None if X_val is None else pieces(X_val, y_val, None)
    fitted = fit_on(Cluster(**options), estimator, pieces(X, y, sample_weight), held)
    parameters = estimator.get_params(deep=False)
    vars(self).update({k: v for k, v in vars(fitted).items() if k not in parameters})
    return fitted


class RobustGradientBoostingClassifier(boosting.RobustGradientBoostingClassifier):
    """Robust gradient boosting of classes on a Dask cluster.

    The parameters are those of ``hardwood.RobustGradientBoostingClassifier``. `fit` takes Dask's
    collections, trains on the workers that hold their partitions, and gives an ordinary estimator
    whose trees are those of one machine with all rows; this object gets the same fitted attributes.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        **options: Any,
    ) -> Any:
        """Train on a cluster.

        Parameters
        ----------
        X : dask.array, dask.dataframe or list of delayed partitions
            Rows, cut by rows; partitions may be empty.
        y, sample_weight : of the same kinds
            Labels and weights, cut like X.
        X_val, y_val : of the same kinds, or None
            Validation data, for `early_stopping` and ``evals_result_``.
        **options : Any
            `client` (default: the current one); `tracker_host` and `tracker_port`, where workers
            meet on the client (default: its address, any port; a sequence: the first free one);
            `timeout`, seconds after which a worker or scheduler that does not answer is given up
            (default: 120); `checkpoint_every`, rounds between two checkpoints (default: 10);
            `workers`, addresses of those to use (default: all).

        Returns
        -------
        hardwood.RobustGradientBoostingClassifier
            An ordinary estimator, fitted.
        """
        local = boosting.RobustGradientBoostingClassifier
        return _fit(self, local, X, y, sample_weight, X_val, y_val, options)


class RobustGradientBoostingRegressor(boosting.RobustGradientBoostingRegressor):
    """Robust gradient boosting of numbers on a Dask cluster.

    The parameters are those of ``hardwood.RobustGradientBoostingRegressor``. `fit` takes Dask's
    collections, trains on the workers that hold their partitions, and gives an ordinary estimator
    whose trees are those of one machine with all rows; this object gets the same fitted attributes.
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        **options: Any,
    ) -> Any:
        """Train on a cluster.

        Parameters
        ----------
        X : dask.array, dask.dataframe or list of delayed partitions
            Rows, cut by rows; partitions may be empty.
        y, sample_weight : of the same kinds
            Labels and weights, cut like X.
        X_val, y_val : of the same kinds, or None
            Validation data, for `early_stopping` and ``evals_result_``.
        **options : Any
            `client` (default: the current one); `tracker_host` and `tracker_port`, where workers
            meet on the client (default: its address, any port; a sequence: the first free one);
            `timeout`, seconds after which a worker or scheduler that does not answer is given up
            (default: 120); `checkpoint_every`, rounds between two checkpoints (default: 10);
            `workers`, addresses of those to use (default: all).

        Returns
        -------
        hardwood.RobustGradientBoostingRegressor
            An ordinary estimator, fitted.
        """
        local = boosting.RobustGradientBoostingRegressor
        return _fit(self, local, X, y, sample_weight, X_val, y_val, options)


class RobustRandomForestClassifier(forest.RobustRandomForestClassifier):
    """A robust random forest on a Dask cluster.

    The parameters are those of ``hardwood.RobustRandomForestClassifier``. `fit` takes Dask's
    collections, trains on the workers that hold their partitions, and gives an ordinary estimator
    whose trees are those of one machine with all rows; this object gets the same fitted attributes.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Any:
        """Train on a cluster.

        Parameters
        ----------
        X : dask.array, dask.dataframe or list of delayed partitions
            Rows, cut by rows; partitions may be empty.
        y, sample_weight : of the same kinds
            Labels and weights, cut like X.
        **options : Any
            `client` (default: the current one); `tracker_host` and `tracker_port`, where workers
            meet on the client (default: its address, any port; a sequence: the first free one);
            `timeout`, seconds after which a worker or scheduler that does not answer is given up
            (default: 120); `checkpoint_every`, rounds between two checkpoints (default: 10);
            `workers`, addresses of those to use (default: all).

        Returns
        -------
        hardwood.RobustRandomForestClassifier
            An ordinary estimator, fitted.
        """
        local = forest.RobustRandomForestClassifier
        return _fit(self, local, X, y, sample_weight, None, None, options)
