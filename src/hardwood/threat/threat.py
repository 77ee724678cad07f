"""What the adversary may do."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import FloatArray, as_table
from hardwood.threat import toml, words
from hardwood.threat.frame import steps_of
from hardwood.threat.reach import Reach
from hardwood.threat.steps import (
    ANY,
    Relative,
    check_step,
    entries,
    is_number,
    is_open,
    is_step,
    pair,
    plain,
    relative,
    scaled,
)
from hardwood.threat.table import TableFacts

Norm = Literal["inf", 1, 2, 0]
NORMS: tuple[Norm, ...] = ("inf", 1, 2, 0)
NormLike = Norm | float


def check_norm(norm: Any) -> Norm:
    """Bring a norm to one of "inf", 1, 2, 0."""
    if norm in ("inf", np.inf):
        return "inf"
    if not isinstance(norm, str | bool):
        for known in (1, 2, 0):
            if norm == known:
                return known
    raise ValueError(f'norm must be "inf", 1, 2 or 0, got norm={norm!r}.')


@dataclass(frozen=True, init=False, repr=False)
class Threat:
    """What the adversary may do to a row.

    The adversary replaces a row x by any point of a closed ball around it that also lies in the
    valid range and leaves the fixed features alone. A missing value is never moved.

    Parameters
    ----------
    eps : float, sequence, mapping, default={}
        How far a value can be moved, finite and >= 0: one number; a list or array with one per
        feature; a mapping from feature name or position (features that are not named do not move).
        Wherever a number may stand, a pair ``(down, up)`` gives different steps down and up, and
        ``hw.relative(down, up)`` gives them as shares of the value's size; a tuple of two numbers
        alone is such a pair for all features. For a column of categories the mapping holds
        ``hw.ANY`` (any known category) or ``{category: [categories it can become]}``. With
        ``norm=0``, one number is the number of features that can be changed, in any way.
    norm : {"inf", 1, 2, 0}, default="inf"
        How a move is measured. With eps per feature, a step counts relative to the eps of its
        feature: ``norm((x' - x) / eps) <= 1``. A change of category counts as one whole step, and
        so does a value that is left blank. With ``norm=0`` and eps per feature, each feature keeps
        to its own limit, and it is counted how many change.
    low, high : float, sequence, mapping or None, default=None
        The valid range of the adversary's values, one number or one per feature.
        It does not push rows that lie outside of it.
    fixed : sequence of int or str, default=()
        Features that the adversary cannot touch, by position or by name.
    integer : sequence of int or str or None, default=None
        Features that only take whole numbers, by position or by name. None: the integer columns of
        a data frame, and none of an array.
    one_hot : sequence of sequences of int or str, default=()
        Groups of columns of which exactly one is 1, all others are 0: together they are one
        category, which can become any other of the group unless a column of it is fixed.
    max_changes : int or None, default=None
        The largest number of features that change; a one-hot group counts as one.
    blank : sequence of int or str, default=()
        Features whose value the adversary can remove, by position or by name.
    only : label or None, default=None
        Only rows of this class attack; None: all do.

    Examples
    --------
    >>> import hardwood as hw
    >>> threat = hw.Threat(eps=0.1, low=0, high=1)
    >>> low, high = threat.ball([[0.25, 0.95]])
    >>> print(low, high)
    [[0.15 0.85]] [[0.35 1.  ]]

    A spammer can add words, but not take them away; the sender's age is out of reach:

    >>> threat = hw.Threat(eps=(0, 3), fixed=["age"])
    >>> low, high = threat.ball([[5.0, 30.0]], feature_names=["n_words", "age"])
    >>> print(low, high)
    [[ 5. 30.]] [[ 8. 30.]]

    An applicant can over-report income by a fifth, and change two fields at most:

    >>> threat = hw.Threat(
    ...     {"income": hw.relative(0, 0.2), "years": 2, "job": {"clerk": ["manager"]}},
    ...     integer=["years"],
    ...     max_changes=2,
    ...     only="default",
    ... )
    >>> print(threat.describe())
    income can rise by up to 20 % of its value.
    years can go up or down by up to 2, in whole numbers.
    job can change from 'clerk' to 'manager'.
    No other column changes.
    At most 2 columns change at once, each within its own limit.
    Only rows of class 'default' attack.
    """

    eps: Any
    norm: Norm
    low: Any
    high: Any
    fixed: tuple[int | str, ...]
    integer: tuple[int | str, ...] | None = None
    one_hot: tuple[tuple[int | str, ...], ...] = ()
    max_changes: int | None = None
    blank: tuple[int | str, ...] = ()
    only: Any = None

    def __init__(
        self,
        eps: Any = (),
        norm: Any = "inf",
        low: Any = None,
        high: Any = None,
        fixed: Iterable[int | str] = (),
        *,
        integer: Iterable[int | str] | None = None,
        one_hot: Iterable[Iterable[int | str]] = (),
        max_changes: int | None = None,
        blank: Iterable[int | str] = (),
        only: Any = None,
    ) -> None:
        if isinstance(one_hot, str) or not isinstance(one_hot, Iterable):
            raise ValueError(f"one_hot must be a list of groups of columns, got {one_hot!r}.")
        eps, low, high = _by_column("eps", eps), _by_column("low", low), _by_column("high", high)
        given = {
            "eps": {} if isinstance(eps, tuple) and not eps else plain(eps),
            "norm": check_norm(norm),
            "low": plain(low),
            "high": plain(high),
            "fixed": _columns("fixed", fixed),
            "integer": None if integer is None else _columns("integer", integer),
            "one_hot": tuple(_columns("one_hot", group) for group in one_hot),
            "max_changes": plain(max_changes),
            "blank": _columns("blank", blank),
            "only": plain(only),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self._check_what_needs_no_table()

    def _check_what_needs_no_table(self) -> None:
        for column, step in [(None, self.eps)] if is_step(self.eps) else entries(self.eps):
            check_step(step, column if isinstance(self.eps, Mapping) else None)
        for name in ("low", "high"):
            for _, limit in entries(getattr(self, name)):
                if limit is not None and (not is_number(limit) or np.isnan(limit)):
                    raise ValueError(
                        f"{name} must be a number, one per feature, or a mapping from feature "
                        f"name, got {name}={limit!r}."
                    )
        _check_range(self.low, self.high)
        most = self.max_changes
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise ValueError(f"max_changes must be a whole number >= 1, got max_changes={most!r}.")
        if most is not None and self.norm == 0 and is_number(self.eps):
            raise ValueError(
                f"With norm=0 and one number, eps is the number of features that can be changed, "
                f"got eps={self.eps!r} and max_changes={most}; leave one of them out."
            )
        both = set(self.fixed) & set(self.blank)
        if both:
            raise ValueError(f"{sorted(both, key=str)[0]!r} is both in fixed and in blank.")
        if isinstance(self.only, list | tuple | Mapping):
            raise ValueError(f"only must be one label, got only={self.only!r}.")
        self._check_groups()

    def _check_groups(self) -> None:
        seen: set[int | str] = set()
        for group in self.one_hot:
            if len(group) < 2:
                raise ValueError(f"A one-hot group needs two or more columns, got {list(group)!r}.")
            for column in group:
                if column in seen:
                    raise ValueError(f"one_hot names the column {column!r} twice.")
                seen.add(column)
                if column in self.blank:
                    raise ValueError(
                        f"{column!r} is in blank and in a one-hot group, which has no blanks."
                    )
                step = self.eps.get(column) if isinstance(self.eps, Mapping) else None
                if step is not None and step is not ANY and max(pair(step)) < 1:
                    raise ValueError(
                        f"eps has {step!r} for {column!r}, but the columns of a one-hot group "
                        f"change between 0 and 1 together; leave it out, or put it into fixed."
                    )

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self._given().items()]
        return f"Threat({', '.join(parts)})"

    def _given(self) -> dict[str, Any]:
        """The arguments that build it again, without those that are as by default."""
        values = {name: getattr(self, name) for name in _DEFAULTS}
        differ = {
            name: value
            for name, value in values.items()
            if value != _DEFAULTS[name] or type(value) is not type(_DEFAULTS[name])
        }
        return {"eps": self.eps, **differ}

    @property
    def is_plain(self) -> bool:
        """Whether it is about numbers that move freely, and nothing else."""
        steps = [self.eps] if is_step(self.eps) else [step for _, step in entries(self.eps)]
        numbers = all(is_number(step) or isinstance(step, list | tuple) for step in steps)
        counted = self.norm != 0 or is_number(self.eps)
        return numbers and counted and not set(self._given()) & set(_BEYOND)

    @property
    def moves(self) -> bool:
        """Whether its own sizes say of any feature that it moves; what is fixed is left aside."""
        if self.norm == 0 and is_number(self.eps):
            return bool(self.eps >= 1)
        steps = [self.eps] if is_step(self.eps) else [step for _, step in entries(self.eps)]
        return bool(self.blank or self.one_hot or any(is_open(step) for step in steps))

    def __hash__(self) -> int:
        # Equal threats must agree here; eps may hold lists and mappings, which do not hash.
        return hash((self.norm, self.fixed, self.one_hot, self.max_changes, self.blank))

    def __mul__(self, factor: Any) -> "Threat":
        """The same threat with steps that many times as large; counts and categories stay."""
        factor = plain(factor)
        if not is_number(factor):
            return NotImplemented
        if not 0 <= factor < np.inf:
            raise ValueError(f"A threat can be multiplied by a finite number >= 0, got {factor}.")
        if self.norm == 0 and is_number(self.eps):
            raise ValueError(
                f"eps={self.eps} counts features (norm=0), it is no size; make a new Threat."
            )
        larger = enlarged(self, factor)
        for step in [larger.eps] if is_step(larger.eps) else dict(entries(larger.eps)).values():
            if isinstance(step, Relative):
                relative(step.down, step.up)  # refuses more than the whole value
        return larger

    __rmul__ = __mul__

    def reach(
        self,
        n_features: int,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[int, Sequence[Any] | Mapping[int, Any] | None] | None = None,
        integer: Iterable[int] = (),
        truths: Collection[int] = (),
    ) -> Reach:
        """Spell the threat out for a table.

        Parameters
        ----------
        n_features : int
            Number of columns.
        feature_names : sequence of str or None, default=None
            Column names, needed where the threat names features.
        categories : mapping or None, default=None
            The features that hold categories, with the names of the codes 0, 1, ... or a mapping
            from code to name; None: the model does not look at the feature, whatever it holds.
        integer : iterable of int, default=()
            The integer columns of the table, for threats that do not name their own.
        truths : collection of int, default=()
            The columns of truth values; where these are numbers to the model, changes of category
            are steps from 0 to 1 and back.

        Returns
        -------
        Reach
            Arrays with one entry per feature.
        """
        names = None if feature_names is None else list(feature_names)
        return TableFacts(n_features, names, categories or {}, integer, truths).spell_out(self)

    def ball(
        self, X: npt.ArrayLike, feature_names: Sequence[str] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Give the ends of the ball around every row.

        In the maximum norm the ball is exactly the box between the ends; in other norms the box is
        the smallest one around it, and along one feature alone the ends are reached. This is about
        numbers: categories and blanks are not among the ends.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN stays NaN.
        feature_names : sequence of str or None, default=None
            Column names, needed where the threat names features.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features)
            Both ends belong to the ball.
        """
        table = as_table(X)
        low, high = _core.ball_ends(table, self.reach(table.shape[1], feature_names).ends)
        return np.asarray(low), np.asarray(high)

    def describe(self, feature_names: Sequence[str] | None = None) -> str:
        """Say in plain English what the adversary may do, one sentence a line.

        Parameters
        ----------
        feature_names : sequence of str or None, default=None
            Names to call columns by which the threat gives by position.

        Returns
        -------
        str
            One sentence a column, and one for counts, norm, range and who attacks.

        Examples
        --------
        >>> import hardwood as hw
        >>> print(hw.Threat(0.1, low=0, high=1, fixed=["age"]).describe())
        Every column can go up or down by up to 0.1.
        age does not change.
        Values that are changed stay between 0 and 1.
        """
        return "\n".join(words.sentences(self, feature_names))

    @classmethod
    def from_frame(cls, X: Any, share: float = 0.1) -> "Threat":
        """Start with a share of each column's spread.

        The spread of a column is the distance between its 5th and 95th percentile, which a few
        outliers do not stretch, as they do the range or the standard deviation. Where these are
        equal (a column of mostly one value), it is the standard deviation. Columns of whole numbers
        move by a whole number, at least 1. Columns that hold no numbers (words, truth values), and
        constant ones, do not move: add what you know about them.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows such as those that the model is asked about.
        share : float, default=0.1
            How large a part of the spread a step is.

        Returns
        -------
        Threat
            With a step for every column that has one.

        Examples
        --------
        >>> import hardwood as hw
        >>> import pandas as pd
        >>> X = pd.DataFrame({"age": range(20, 61), "dose": [0.5, 1.5] * 20 + [1.0]})
        >>> hw.Threat.from_frame(X)
        Threat(eps={'age': 4, 'dose': 0.1}, integer=('age',))
        """
        return cls(**steps_of(X, share))

    @classmethod
    def from_toml(cls, source: str | Path) -> "Threat":
        r"""Read a threat from a TOML file or text.

        Parameters
        ----------
        source : Path or str
            The file, or the text itself (a text has a line break or an equals sign).

        Returns
        -------
        Threat
            The threat that `to_toml` writes so.

        Examples
        --------
        >>> import hardwood as hw
        >>> hw.Threat.from_toml('max_changes = 2\n[eps]\nage = 2\njob = "any"')
        Threat(eps={'age': 2, 'job': ANY}, max_changes=2)
        """
        return cls(**toml.read(source, ("eps", *_DEFAULTS)))

    def to_toml(self) -> str:
        """Write the threat as TOML, for the command line and for people.

        Returns
        -------
        str
            The text of a TOML file; `from_toml` reads it.
        """
        return toml.write(self._given())


_DEFAULTS: dict[str, Any] = {
    "norm": "inf",
    "low": None,
    "high": None,
    "fixed": (),
    "integer": None,
    "one_hot": (),
    "max_changes": None,
    "blank": (),
    "only": None,
}
_BEYOND = ("integer", "one_hot", "max_changes", "blank", "only")  # numbers that move freely


def as_threat(eps: Any, threat: Threat | None, norm: Norm = "inf") -> Threat:
    """Choose between the two ways in which callers can say what the adversary may do."""
    if threat is None:
        return Threat(eps, norm=norm)
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a hardwood.Threat, got {type(threat).__name__}.")
    return threat


def enlarged(threat: Threat, factor: float) -> Threat:
    """A threat with steps that many times as large, as distances in multiples of it mean them.

    Shares go beyond the whole value there, which nobody means who writes a threat.
    """
    eps = threat.eps
    if is_step(eps):
        eps = scaled(eps, factor)
    elif isinstance(eps, Mapping):
        eps = {column: scaled(step, factor) for column, step in eps.items()}
    else:
        eps = [scaled(step, factor) for step in eps]
    return Threat(**{**threat._given(), "eps": eps})


def threat_of(given: Threat | float) -> Threat:
    """A threat as it is, or that of one size for all columns."""
    return given if isinstance(given, Threat) else Threat(given)


def _by_column(what: str, given: Any) -> Any:
    """Numbers of columns in a form that says which is whose."""
    if isinstance(given, set | frozenset):
        raise ValueError(
            f"{what} must not be a set, which has no order, got {what}={given!r}; pass a list with "
            f"one entry per feature, or a mapping from feature name."
        )
    index: Any = getattr(given, "index", None)  # of a pandas series, such as X.std() of a frame
    if hasattr(given, "to_dict") and all(isinstance(name, str) for name in index):
        return given.to_dict()
    return given


def _columns(what: str, given: Any) -> tuple[int | str, ...]:
    """Columns by name or position."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(
            f"{what} must be a sequence of features, got {given!r}; "
            f"for one feature pass a list of one."
        )
    columns = plain(tuple(given))
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, int | str):
            raise ValueError(f"{what} must name features or give their positions, got {column!r}.")
    return columns  # type: ignore[no-any-return]


def _check_range(low: Any, high: Any) -> None:
    """Refuse a range that is empty, as far as it is known without a table."""
    for column, least in entries(low):
        for other, most in entries(high):
            same = column is None or other is None or column == other
            if same and least is not None and most is not None and least > most:
                at = column if other is None else other
                of = "" if at is None else f" for column {at!r}"
                raise ValueError(f"low must not exceed high, got low={least}, high={most}{of}.")
