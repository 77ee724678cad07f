"""Tree models that stay right when someone tampers with their inputs.

The public names, nothing else; each is loaded when it is first used, so that importing the package
is quick and quiet.
"""

import sys
from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardwood import dask, datasets, distributed
    from hardwood.attack.cheng import ChengSettings
    from hardwood.attack.find import find_adversarial
    from hardwood.attack.result import AttackResult
    from hardwood.ensemble.boosting import BoostingRound
    from hardwood.errors import (
        CommunicationError,
        HardwoodError,
        HardwoodWarning,
        ModelFileError,
        UndecidedWarning,
        UnitWarning,
        UnsupportedModelError,
    )
    from hardwood.estimators.adversarial import AdversarialBoostingClassifier
    from hardwood.estimators.boosting import (
        RobustGradientBoostingClassifier,
        RobustGradientBoostingRegressor,
    )
    from hardwood.estimators.forest import RobustRandomForestClassifier
    from hardwood.estimators.tree import RobustDecisionTreeClassifier
    from hardwood.hardening.compare import Comparison, compare
    from hardwood.hardening.twin import harden
    from hardwood.model.average import average
    from hardwood.model.load import load_model
    from hardwood.model.trees import Trees
    from hardwood.report.audit import Audit, RegressionAudit, audit
    from hardwood.report.displays import (
        AdversarialGridDisplay,
        ColumnBudgetDisplay,
        DecisionBoundaryDisplay,
        DistanceDistributionDisplay,
        RobustnessCurveDisplay,
    )
    from hardwood.threat import ANY, Threat, relative
    from hardwood.verify.certify import certify
    from hardwood.verify.curve import AccuracyCurve, certified_accuracy
    from hardwood.verify.distance import minimal_distance
    from hardwood.verify.output import OutputRange, output_range
    from hardwood.verify.result import Certificate, DistanceResult
    from hardwood.verify.scorer import make_certified_scorer

__version__ = _version("hardwood")

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "hardwood has not been tried without Python's global interpreter lock. Start this "
        "free-threaded Python with PYTHON_GIL=1, or use the usual build of Python."
    )

_HOME = {
    "ANY": "threat",
    "AccuracyCurve": "verify.curve",
    "AdversarialBoostingClassifier": "estimators.adversarial",
    "AdversarialGridDisplay": "report.displays",
    "AttackResult": "attack.result",
    "Audit": "report.audit",
    "BoostingRound": "ensemble.boosting",
    "Certificate": "verify.result",
    "ChengSettings": "attack.cheng",
    "ColumnBudgetDisplay": "report.displays",
    "CommunicationError": "errors",
    "Comparison": "hardening.compare",
    "DecisionBoundaryDisplay": "report.displays",
    "DistanceDistributionDisplay": "report.displays",
    "DistanceResult": "verify.result",
    "HardwoodError": "errors",
    "HardwoodWarning": "errors",
    "ModelFileError": "errors",
    "OutputRange": "verify.output",
    "RegressionAudit": "report.audit",
    "RobustDecisionTreeClassifier": "estimators.tree",
    "RobustGradientBoostingClassifier": "estimators.boosting",
    "RobustGradientBoostingRegressor": "estimators.boosting",
    "RobustRandomForestClassifier": "estimators.forest",
    "RobustnessCurveDisplay": "report.displays",
    "Threat": "threat",
    "Trees": "model.trees",
    "UndecidedWarning": "errors",
    "UnitWarning": "errors",
    "UnsupportedModelError": "errors",
    "audit": "report.audit",
    "average": "model.average",
    "certified_accuracy": "verify.curve",
    "certify": "verify.certify",
    "compare": "hardening.compare",
    "find_adversarial": "attack.find",
    "harden": "hardening.twin",
    "load_model": "model.load",
    "make_certified_scorer": "verify.scorer",
    "minimal_distance": "verify.distance",
    "output_range": "verify.output",
    "relative": "threat",
}

__all__ = [
    "ANY",
    "AccuracyCurve",
    "AdversarialBoostingClassifier",
    "AdversarialGridDisplay",
    "AttackResult",
    "Audit",
    "BoostingRound",
    "Certificate",
    "ChengSettings",
    "ColumnBudgetDisplay",
    "CommunicationError",
    "Comparison",
    "DecisionBoundaryDisplay",
    "DistanceDistributionDisplay",
    "DistanceResult",
    "HardwoodError",
    "HardwoodWarning",
    "ModelFileError",
    "OutputRange",
    "RegressionAudit",
    "RobustDecisionTreeClassifier",
    "RobustGradientBoostingClassifier",
    "RobustGradientBoostingRegressor",
    "RobustRandomForestClassifier",
    "RobustnessCurveDisplay",
    "Threat",
    "Trees",
    "UndecidedWarning",
    "UnitWarning",
    "UnsupportedModelError",
    "audit",
    "average",
    "certified_accuracy",
    "certify",
    "compare",
    "dask",
    "datasets",
    "distributed",
    "find_adversarial",
    "harden",
    "load_model",
    "make_certified_scorer",
    "minimal_distance",
    "output_range",
    "relative",
]


def __getattr__(name: str) -> Any:
    if name in ("dask", "datasets", "distributed"):
        return import_module(f"hardwood.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'hardwood' has no attribute {name!r}")
    value = getattr(import_module(f"hardwood.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
