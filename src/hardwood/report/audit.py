"""The whole story of one model: how fragile it is, where, and what can be proven."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from hardwood.report import findings, page, words
from hardwood.report.findings import Settings, Stage
from hardwood.report.images import image_rows
from hardwood.report.replay import Replay
from hardwood.threat import Threat


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
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("fragile needs pandas. Install it with: pip install pandas") from None
        names = ["row", "label", "becomes", "multiple", "changes", "sentence"]
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
            " ".join(content["threat"]["words"][:6])
            + (" ..." if len(content["threat"]["words"]) > 6 else ""),
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
            A file of `to_json`.

        Returns
        -------
        Audit
            The findings; `check` asks whether they hold.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} is no JSON file: {error}.") from None
        if not isinstance(content, dict) or content.get("format") != findings.FORMAT:
            raise ValueError(f"{str(path)!r} is no report of an audit; make one with to_json.")
        if content.get("format_version") != findings.FORMAT_VERSION:
            raise ValueError(
                f"{str(path)!r} has format_version {content.get('format_version')!r}, and this "
                f"hardwood reads {findings.FORMAT_VERSION}; make the report anew."
            )
        return cls(content)

    def check(
        self, model: Any, X: Any, y: Any, *, n_rows: int = 100, random_state: int | None = None
    ) -> list[dict[str, Any]]:
        """Ask again what a report claims.

        Fingerprints of model and data are compared, all counts are derived again from the answers
        row by row, every example is replayed, and a sample of the certificates and distances is
        proven again.

        Parameters
        ----------
        model, X, y : object
            The model, rows and labels that the report speaks of.
        n_rows : int, default=100
            How many certificates, and how many distances, to prove again.
        random_state : int or None, default=None
            Seed of that sample; None draws another one each time.

        Returns
        -------
        list of dict
            One a claim: ``name``, ``passed`` and ``words``.
        """
        sealed = self.content.get("seal") in (None, seal(self.content))
        try:
            replay = Replay(self.content, model, X, y, n_rows, random_state)
            return replay.checks(sealed)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(
                f"The report is damaged: {type(error).__name__} at {error}. Make it anew."
            ) from None

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


def audit(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    threshold: float | None = None,
    name: str | None = None,
    twin: Any = None,
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
        Anything that `load_model` reads.
    X : array-like of shape (n_samples, n_features)
        Rows, best those that the model was not trained on.
    y : array-like of shape (n_samples,)
        True labels.
    threat : Threat or number
        What the adversary may do; a number is ``Threat(eps=number)``.
    threshold : float or None, default=None
        The probability from which the second class is said, where it is not one half.
    name : str or None, default=None
        What the page calls the model; None means its file or its class.
    twin : object or None, default=None
        A second model, such as the first one's hardened twin, shown beside it.
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
        The findings; ``to_html`` and ``to_json`` write them.

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
    if not isinstance(threat, Threat):
        threat = Threat(threat)
    settings = Settings(
        name=name,
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
    content = findings.measure(model, X, y, threat, settings)
    if image is not None:
        content["images"] = image_rows(content, X, image)
    if twin is not None:
        other = findings.measure(twin, X, y, threat, replace(settings, name=None))
        kept = ("model", "accuracy", "certificate", "classes", "curve", "distances", "seconds")
        content["twin"] = {name: other[name] for name in kept}
    return Audit(content)


def seal(content: dict[str, Any]) -> str:
    """A fingerprint of the findings, so that a slip of an editor is seen at once."""
    plain = {name: value for name, value in content.items() if name != "seal"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
