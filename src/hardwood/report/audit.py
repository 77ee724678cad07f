"""The whole story of one model: how fragile it is, where, and what can be proven."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hardwood.model.load import open_model
from hardwood.report import findings, page, regression, words
from hardwood.report.clock import Settings, Stage
from hardwood.report.images import image_rows
from hardwood.report.replay import RegressionReplay, Replay
from hardwood.threat import Threat, threat_of

# What reading a mapping with a hole, or with words for numbers, can end in.
_DAMAGE = (
    LookupError,
    StopIteration,
    TypeError,
    AttributeError,
    ArithmeticError,
    SyntaxError,
    RecursionError,
)


class Audit:
    """What `audit` found out about a model.

    Attributes
    ----------
    content : dict
        Everything the page shows, as plain numbers and words; what `to_json` writes.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> data = load_breast_cancer(as_frame=True)
    >>> X, y = data.data[["mean radius", "mean texture"]], data.target
    >>> forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[:400], y[:400])
    >>> report = hw.audit(forest, X[400:], y[400:], hw.Threat(eps=0.5))
    >>> report.certified_accuracy < report.accuracy
    True
    >>> len(report.fragile.columns)
    6
    """

    _replay: ClassVar[type[Replay | RegressionReplay]] = Replay

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    @property
    def accuracy(self) -> float:
        """Share of all rows that the model gets right without an attack."""
        return float(self.content["accuracy"]["right"] / self.content["accuracy"]["rows"])

    @property
    def certified_accuracy(self) -> float:
        """Share of the examined rows proven right under the threat; never above the truth."""
        counts = self.content["certificate"]
        return float(counts["certified"] / counts["rows"])

    @property
    def attacked_accuracy(self) -> float:
        """Share of the examined rows for which no example is known; never below the truth."""
        counts = self.content["certificate"]
        return float((counts["certified"] + counts["unknown"]) / counts["rows"])

    @property
    def checks(self) -> list[dict[str, Any]]:
        """What was looked at: name, whether it passed (None: could not be), and words."""
        return list(self.content["checks"])

    @property
    def fragile(self) -> Any:
        """The rows that the smallest changes turn, nearest first, as a pandas DataFrame.

        Columns: row (its position in X), label, becomes, multiple (of the threat), changes (how
        many columns) and the sentence.
        """
        return self._frame(["row", "label", "becomes", "multiple", "changes", "sentence"])

    def _frame(self, names: list[str]) -> Any:
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("fragile needs pandas. Install it with: pip install pandas") from None
        lines = [{**one, "changes": len(one["changes"])} for one in self.content["fragile"]]
        return pd.DataFrame(lines, columns=names)

    def summary(self) -> str:
        """Tell the main findings in a few lines of text.

        Returns
        -------
        str
            Accuracy, what is proven, what is broken, the most fragile row, and failed checks.
        """
        content = self.content
        accuracy, counts = content["accuracy"], content["certificate"]
        lines = [
            f"{content['model']['name']}: {words.count(content['model']['n_trees'])} trees on "
            f"{words.count(content['model']['n_columns'])} columns",
            f"right without an attack: {words.share(accuracy['right'], accuracy['rows'])}; "
            f"always {accuracy['majority']}: "
            f"{words.share(accuracy['majority_rows'], accuracy['rows'])}",
            words.opening(content["threat"]["words"]),
            f"proven to stay right: {words.share(counts['certified'], counts['rows'])}",
            f"turned by the adversary: {words.share(counts['broken'], counts['rows'])}",
            f"unknown: {words.share(counts['unknown'], counts['rows'])}",
        ]
        if content["fragile"]:
            first = content["fragile"][0]
            lines.append(f"most fragile: row {words.count(first['row'])}, {first['sentence']}")
        if content["spent"]["columns"]:
            names = [one["column"] for one in content["spent"]["columns"][:3]]
            lines.append(f"changed most often: {words.listed(names)}")
        if "twin" in content:
            twin = content["twin"]["certificate"]
            lines.append(
                f"the hardened twin is proven on {words.share(twin['certified'], twin['rows'])}"
            )
        lines += [f"check: {one['words']}" for one in self.checks if one["passed"] is False]
        return "\n".join(lines)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write the findings as JSON.

        The format is described by ``hardwood/report/audit.schema.json``; `hardwood check` replays
        what such a file claims.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to; None only returns the text.

        Returns
        -------
        str
            The text of the file.
        """
        text = json.dumps(
            {**self.content, "seal": seal(self.content)}, ensure_ascii=False, indent=1
        )
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, path: str | Path) -> "Audit":
        """Read what `to_json` wrote.

        Parameters
        ----------
        path : str or Path
            A file of `to_json`, or the text itself.

        Returns
        -------
        Audit
            The findings; `check` asks whether they hold.
        """
        where, is_text = repr(str(path)), str(path).lstrip().startswith("{")
        if is_text:
            where = "The text"
        try:
            content = json.loads(str(path) if is_text else Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where} is no JSON file: {error}.") from None
        kinds = {findings.FORMAT: Audit, regression.FORMAT: RegressionAudit}
        if not isinstance(content, dict) or str(content.get("format")) not in kinds:
            raise ValueError(f"{where} is no report of an audit; make one with to_json.")
        if content.get("format_version") != findings.FORMAT_VERSION:
            raise ValueError(
                f"{where} has format_version {content.get('format_version')!r}, and this "
                f"hardwood reads {findings.FORMAT_VERSION}; make the report anew."
            )
        content.setdefault("seal", "")  # a file always has one; only findings in memory do not
        return kinds[content["format"]](content)

    def check(
        self,
        model: Any,
        X: Any,
        y: Any,
        *,
        twin: Any = None,
        n_rows: int = 100,
        random_state: int | None = None,
    ) -> list[dict[str, Any]]:
        """Ask again what a report claims.

        Fingerprints of model and data are compared, all counts and sentences are derived again from
        the answers row by row, every example is replayed, single columns are tried again, and a
        sample of the certificates and distances is proven again.

        Parameters
        ----------
        model, X, y : object
            The model, rows and labels that the report speaks of.
        twin : object or None, default=None
            The second model of a report with a twin; without it the twin's counts are only added
            up.
        n_rows : int, default=100
            How many certificates, and how many distances, to prove again.
        random_state : int or None, default=None
            Seed of that sample; None draws another one each time.

        Returns
        -------
        list of dict
            One a claim: ``name``, ``passed`` and ``words``.
        """
        with damage_is_told():
            sealed = self.content.get("seal") in (None, seal(self.content))
            rng = np.random.default_rng(random_state)
            return self._replay(self.content, model, X, y, n_rows, rng).checks(sealed, twin)

    def to_html(self, path: str | Path | None = None) -> str:
        """Write the findings as one page that needs nothing else to open.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to; None only returns the text.

        Returns
        -------
        str
            The text of the page.
        """
        with damage_is_told():
            text = page.render(self.content)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        return page.framed(self.to_html())

    def __repr__(self) -> str:
        return (
            f"Audit(model={self.content['model']['name']!r}, accuracy={self.accuracy:.4g}, "
            f"certified_accuracy={self.certified_accuracy:.4g}, "
            f"attacked_accuracy={self.attacked_accuracy:.4g})"
        )


class RegressionAudit(Audit):
    """What `audit` found out about a model that predicts numbers.

    There are no labels to turn here; what is told instead is how far predictions can be moved, in
    their own units, and what that does to the error.

    Attributes
    ----------
    content : dict
        Everything the page shows, as plain numbers and words; what `to_json` writes.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X[:350], y[:350])
    >>> report = hw.audit(model, X[350:], y[350:], hw.Threat(eps=0.005))
    >>> report.error < report.found_error <= report.proven_error
    True
    """

    _replay = RegressionReplay

    def _no_labels(self) -> float:
        raise AttributeError(
            "A model that predicts numbers has no accuracy; see error, found_error and "
            "proven_error."
        )

    accuracy = property(_no_labels)
    certified_accuracy = property(_no_labels)
    attacked_accuracy = property(_no_labels)

    @property
    def error(self) -> float:
        """Mean absolute error on all rows, without an attack."""
        return float(self.content["error"]["absolute"])

    @property
    def found_error(self) -> float:
        """Mean absolute error of the measured rows at their examples; never above the truth."""
        return float(self.content["under_attack"]["found"])

    @property
    def proven_error(self) -> float:
        """Mean absolute error of the measured rows that no change exceeds; never below the truth.

        Infinite where the time limit came before the first bound of a row.
        """
        proven = self.content["under_attack"]["proven"]
        return float("inf") if proven is None else float(proven)

    @property
    def fragile(self) -> Any:
        """The rows whose predictions can be moved farthest, as a pandas DataFrame.

        Columns: row (its position in X), said, becomes, changes (how many columns) and the
        sentence.
        """
        return self._frame(["row", "said", "becomes", "changes", "sentence"])

    def summary(self) -> str:
        """Tell the main findings in a few lines of text.

        Returns
        -------
        str
            Errors, how far predictions can be moved, the most fragile row, and failed checks.
        """
        content = self.content
        error, attacked, moves = content["error"], content["under_attack"], content["moves"]
        lines = [
            f"{content['model']['name']}: {words.count(content['model']['n_trees'])} trees on "
            f"{words.count(content['model']['n_columns'])} columns",
            f"mean absolute error without an attack: {words.number(error['absolute'], 4)}; always "
            f"{words.number(error['median'], 4)}: {words.number(error['median_absolute'], 4)} "
            f"({words.count(error['rows'])} rows)",
            words.opening(content["threat"]["words"]),
            f"mean absolute error under attack: "
            f"{words.between(attacked['found'], attacked['proven'])} "
            f"({words.count(attacked['rows'])} rows)",
            f"a prediction can be moved by "
            f"{words.between(moves['mean_found'], moves['mean_proven'])} on average",
        ]
        if content["fragile"]:
            first = content["fragile"][0]
            lines.append(f"moved farthest: row {words.count(first['row'])}, {first['sentence']}")
        if "twin" in content:
            twin = content["twin"]
            lines.append(
                f"the hardened twin errs by {words.number(twin['error']['absolute'], 4)} without "
                f"an attack, and under attack by "
                f"{words.between(twin['under_attack']['found'], twin['under_attack']['proven'])}"
            )
        lines += [f"check: {one['words']}" for one in self.checks if one["passed"] is False]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"RegressionAudit(model={self.content['model']['name']!r}, error={self.error:.4g}, "
            f"found_error={self.found_error:.4g}, proven_error={self.proven_error:.4g})"
        )


def audit(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    classes: Sequence[str] | None = None,
    threshold: float | None = None,
    name: str | None = None,
    twin: Any = None,
    twin_name: str | None = None,
    image: tuple[int, int] | None = None,
    max_rows: int = 10_000,
    n_distances: int = 1_000,
    n_fragile: int = 20,
    time_limit: float | None = 1.0,
    total_time_limit: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Stage | None = None,
) -> Audit:
    """Find out how fragile a model is, where, and what can be proven about it.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads. Of a regression model the audit tells how far its
        predictions can be moved.
    X : array-like of shape (n_samples, n_features)
        Rows, best those that the model was not trained on.
    y : array-like of shape (n_samples,)
        True labels, or numbers.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    classes : sequence of str or None, default=None
        What the page calls the classes, in the model's order; None means as the model does. Files
        of XGBoost and LightGBM know them as 0, 1, ... only.
    threshold : float or None, default=None
        The probability from which the second class is said, where it is not one half.
    name : str or None, default=None
        What the page calls the model; None means its file or its class.
    twin : object or None, default=None
        A second model, such as the first one's hardened twin, shown beside it.
    twin_name : str or None, default=None
        What the page calls it; None means its file or its class.
    image : (int, int) or None, default=None
        Height and width, where rows are images: the page shows the most fragile ones.
    max_rows : int, default=10_000
        Rows to certify; more are sampled.
    n_distances : int, default=1_000
        Rows whose smallest change is measured exactly, for the curve and the most fragile rows;
        more are sampled.
    n_fragile : int, default=20
        How many of the most fragile rows to tell.
    time_limit : float or None, default=1.0
        Seconds for each question about a row; a row that is stopped is ``"unknown"``.
    total_time_limit : float or None, default=None
        Seconds for the whole audit of a model; what is open by then is ``"unknown"``.
    random_state : int, default=0
        Seed of the samples.
    n_jobs : int or None, default=None
        Number of threads; -1 means all cores. The answers do not depend on it.
    progress : callable or None, default=None
        Called with the name of a stage, how many of its steps are done, and how many there are.

    Returns
    -------
    Audit
        The findings; ``to_html`` and ``to_json`` write them. A `RegressionAudit` where the model
        predicts numbers.

    Notes
    -----
    Sizes of changes are told as multiples of the threat: at 1 the adversary is as strong as the
    threat says, at 2 twice as strong. Every share is between what is proven (below) and what was
    found (above); what is neither is unknown, and never counts as certified.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X[:400], y[:400])
    >>> report = hw.audit(forest, X[400:], y[400:], hw.Threat(eps=0.05, low=0, high=1))
    >>> print(report.summary().splitlines()[1])
    right without an attack: 95.3 % (161 of 169); always 1: 76.9 % (130 of 169)
    """
    threat = threat_of(threat)
    settings = Settings(
        name=name,
        classes=classes,
        threshold=threshold,
        max_rows=max_rows,
        n_distances=n_distances,
        n_fragile=n_fragile,
        time_limit=time_limit,
        total_time_limit=total_time_limit,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    numbers = _predicts_numbers(model, X)
    if twin is not None and _predicts_numbers(twin, X) != numbers:
        told = ("a model that predicts numbers", "a classifier")
        one, other = told if numbers else reversed(told)
        raise ValueError(f"twin must answer the model's question, got {other} beside {one}.")
    if numbers:
        for option, given in (
            ("classes", classes),
            ("threshold", threshold),
            ("image", image),
        ):
            if given is not None:
                raise ValueError(f"{option} is for classifiers, and this model predicts numbers.")
    kind, room = (RegressionAudit, regression) if numbers else (Audit, findings)
    content = room.measure(model, X, y, threat, settings)
    if image is not None:
        content["images"] = image_rows(content, X, image)
    if twin is not None:
        measured = room.measure(twin, X, y, threat, replace(settings, name=twin_name))
        measured["answers"].pop("examples", None)  # the page tells those of the first model
        content["twin"] = {name: measured[name] for name in room.TWIN}
    return kind(content)


def _predicts_numbers(model: Any, X: Any) -> bool:
    return open_model(model, like=X)[0].task == "regression"


@contextmanager
def damage_is_told() -> Iterator[None]:
    """Whatever a file of another hand makes of a report, it ends in one sentence."""
    try:
        yield
    except _DAMAGE as error:
        told = f"{type(error).__name__} at {error}"[:200]
        raise ValueError(f"The report is damaged: {told}. Make it anew.") from None


def seal(content: dict[str, Any]) -> str:
    """A fingerprint of the findings, so that a slip of an editor is seen at once."""
    plain = {name: value for name, value in content.items() if name != "seal"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
