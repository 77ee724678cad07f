"""The estimators and questions on a Dask cluster."""

try:
    import distributed as _needed  # noqa: F401 - says what is missing before anything else does
except ImportError:
    raise ImportError(
        'hardwood.dask needs dask and distributed. Install them with: pip install "hardwood[dask]"'
    ) from None

from hardwood.dask.estimators import (
    RobustGradientBoostingClassifier,
    RobustGradientBoostingRegressor,
    RobustRandomForestClassifier,
)
from hardwood.dask.questions import (
    audit,
    certify,
    find_adversarial,
    minimal_distance,
    predict,
    sample,
)

__all__ = [
    "RobustGradientBoostingClassifier",
    "RobustGradientBoostingRegressor",
    "RobustRandomForestClassifier",
    "audit",
    "certify",
    "find_adversarial",
    "minimal_distance",
    "predict",
    "sample",
]
