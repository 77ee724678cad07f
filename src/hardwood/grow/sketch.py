"""The values of a table's features, few enough to be sent and put together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import BoolArray, Float32Array, FloatArray, IntArray
from hardwood.grow.part import Part
from hardwood.model.trees import Trees
from hardwood.threat import Reach

Counts = npt.NDArray[np.uint64]

_BLOCK = 1 << 16  # rows taken back from codes together
_BUDGET = 1 << 23  # values of a whole sketch
_LEAST = 1 << 11  # values of a feature


def values_kept(n_features: int) -> int:
    """Values of a feature up to which its sketch is exact; a sample has no more than the first."""
    return max(min(_BUDGET // max(n_features, 1), _core.SAMPLED_ROWS), _LEAST)


@dataclass(frozen=True)
class Sample:
    """The rows of a table in pieces that stand for all: those that a table of all rows takes."""

    start: npt.NDArray[np.uint64]  # where pieces begin, if a row of weight 2 is two rows; the end
    places: npt.NDArray[np.uint64] | None  # those that are taken; None: all, as there are few

    @classmethod
    def of(cls, sizes: Sequence[int], n_rows: int) -> "Sample":
        """Sample pieces in which so many rows are counted; `n_rows` decides whether all are taken.

        Weights that are not whole numbers are counted in small steps; then there are fewer rows
        than are counted.
        """
        start = np.concatenate([[0], np.cumsum(sizes, dtype=np.uint64)]).astype(np.uint64)
        few = n_rows <= _core.SAMPLED_ROWS
        return cls(start, None if few else _core.sample_places(int(start[-1])))

    def rows(self, piece: int, count: Counts | None) -> tuple[Any, Counts | None]:
        """Rows of a piece that are taken, and how often each of them counts; None: once."""
        if self.places is None:
            return slice(None), count
        first, last = np.searchsorted(self.places, self.start[piece : piece + 2])
        inside = (self.places[first:last] - self.start[piece]).astype(np.int64)
        if count is None:
            return inside, None
        row = np.searchsorted(np.cumsum(count), inside, side="right")
        rows, n_taken = np.unique(row, return_counts=True)
        return rows, n_taken.astype(np.uint64)


@dataclass(frozen=True)
class Drawn:
    """Rows of a sample as they are."""

    X: Float32Array
    count: Counts | None  # how often each of them counts; None: once
    missing: BoolArray  # of each feature: has any row no value, drawn or not?

    @classmethod
    def together(cls, parts: Sequence["Drawn"]) -> "Drawn":
        """Put the rows of parts together, in the order given."""
        counts = [part.count for part in parts if part.count is not None]
        return cls(
            np.concatenate([part.X for part in parts]),
            np.concatenate(counts) if counts else None,
            np.any([part.missing for part in parts], axis=0),
        )


@dataclass
class FeatureSketch:
    """The values of one feature and how many rows have each; a row of weight 2 is two rows.

    Where there are too many values, neighbours are put together: then a value stands for all from
    the one before it (exclusive) to itself, and the number of rows up to any value is right to
    within `error`.
    """

    x: Float32Array  # increasing
    count: Counts
    n_missing: int = 0
    error: int = 0

    @classmethod
    def of(cls, column: npt.NDArray[Any], count: Counts | None, most: int) -> "FeatureSketch":
        """Sketch a column; NaN is missing."""
        x = column.astype(np.float32) + np.float32(0)  # -0 is 0
        present = ~np.isnan(x)
        everyone = len(x) if count is None else int(count.sum())
        x = x[present]
        if count is None:
            values, n_equal = np.unique(x, return_counts=True)
            counts = n_equal.astype(np.uint64)
        else:
            values, inverse = np.unique(x, return_inverse=True)
            counts = np.zeros(len(values), dtype=np.uint64)
            np.add.at(counts, inverse, count[present])
        return cls(values, counts, everyone - int(counts.sum()))._within(most)

    @classmethod
    def merged(cls, sketches: Sequence["FeatureSketch"], most: int) -> "FeatureSketch":
        """Put sketches of parts together."""
        x = np.concatenate([sketch.x for sketch in sketches])
        order = np.argsort(x, kind="stable")
        x = x[order]
        count = np.concatenate([sketch.count for sketch in sketches])[order]
        first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if len(x) else order
        together = np.add.reduceat(count, first) if len(x) else count
        return cls(
            x[first],
            together,
            sum(sketch.n_missing for sketch in sketches),
            sum(sketch.error for sketch in sketches),
        )._within(most)

    def _within(self, most: int) -> "FeatureSketch":
        """Put neighbours together until at most `most` values are left."""
        if len(self.x) <= most:
            return self
        upto = np.cumsum(self.count)
        share = max(int(upto[-1]) // (most // 2), 1)
        # A new group begins where the rows pass another multiple of the share.
        group = (upto - 1) // np.uint64(share)
        last = np.flatnonzero(np.concatenate([group[1:] != group[:-1], [True]]))
        count = np.diff(np.concatenate([[np.uint64(0)], upto[last]]))
        # What a group of several values holds may lie anywhere below its largest one.
        several = np.diff(np.concatenate([[-1], last])) > 1
        error = int(count[several].max(initial=0))
        return FeatureSketch(
            self.x[last], count.astype(np.uint64), self.n_missing, self.error + error
        )


@dataclass
class Sketch:
    """The values of all features of some rows."""

    features: list[FeatureSketch]
    missing: BoolArray  # of each feature: has any row no value, sketched or not?

    @classmethod
    def of(cls, drawn: Drawn) -> "Sketch":
        """Sketch rows."""
        most = values_kept(drawn.X.shape[1])
        columns = drawn.X.T
        features = [FeatureSketch.of(column, drawn.count, most) for column in columns]
        return cls(features, drawn.missing)

    @classmethod
    def merged(cls, sketches: Sequence["Sketch"]) -> "Sketch":
        """Put sketches of parts together, in the order given, two at a time: errors stay small."""
        sketches = list(sketches)
        most = values_kept(len(sketches[0].features))
        while len(sketches) > 1:
            pairs = [sketches[i : i + 2] for i in range(0, len(sketches), 2)]
            sketches = [
                cls(
                    [
                        FeatureSketch.merged(group, most)
                        for group in zip(*(sketch.features for sketch in pair), strict=True)
                    ],
                    np.any([sketch.missing for sketch in pair], axis=0),
                )
                for pair in pairs
            ]
        return sketches[0]

    @property
    def error(self) -> float:
        """Largest error of the share of rows up to a value, over all features; 0 if exact."""
        return max(
            (feature.error / max(int(feature.count.sum()), 1) for feature in self.features),
            default=0.0,
        )

    def cuts(
        self,
        reach: Reach,
        max_bins: int,
        codes_of_bin: dict[int, list[IntArray]] | None = None,
    ) -> "Cuts":
        """Choose the edges of bins as a table of all rows does; categories have theirs."""
        codes_of_bin = codes_of_bin or {}
        edges, frequent = [], []
        for f, (feature, ends) in enumerate(zip(self.features, reach.ends, strict=True)):
            if f in codes_of_bin:
                edges.append(np.arange(1, len(codes_of_bin[f]), dtype=np.float32) - np.float32(0.5))
                often = feature.x[np.argmax(feature.count)] if len(feature.x) else 0
                frequent.append(int(often))
                continue
            chosen, code = _core.choose_edges(
                feature.x,
                feature.count,
                feature.n_missing,
                bool(self.missing[f]),
                np.ascontiguousarray(ends[None, :]),
                max_bins=max_bins,
            )
            edges.append(chosen)
            frequent.append(code)
        return Cuts(edges, np.array(frequent, dtype=np.uint8), max_bins, codes_of_bin)

    def end_cuts(self, reach: Reach, max_bins: int, at_rest: bool) -> "EndCuts":
        """Choose the candidates of certified training as a table of all rows does."""
        return EndCuts(
            [
                _core.choose_candidates(
                    feature.x,
                    feature.count,
                    bool(missing),
                    np.ascontiguousarray(ends[None, :]),
                    max_bins=max_bins,
                    at_rest=at_rest,
                )
                for feature, ends, missing in zip(
                    self.features, reach.ends, self.missing, strict=True
                )
            ],
            self.missing.astype(np.uint8),
            at_rest,
        )


@dataclass(frozen=True)
class EndRows:
    """Rows in codes of certified training; see `EndCodes` in the core."""

    n_rows: int
    codes: npt.NDArray[np.uint8]

    def core(self) -> tuple[Any, ...]:
        """The same for the kernels."""
        return (self.n_rows, self.codes)


@dataclass(frozen=True)
class EndCuts:
    """Where the ends of balls become codes: the candidate thresholds of every feature."""

    candidates: list[Float32Array]
    missing: npt.NDArray[np.uint8]  # whether any row has no value
    at_rest: bool  # rows come twice, the second time unmoved

    def encode(
        self, X: npt.NDArray[Any], reach: Reach, n_threads: int, *, at_rest: bool | None = None
    ) -> EndRows:
        """Put rows, float32 or float64 in C order, into codes."""
        codes = _core.encode_ends(
            X,
            reach.ends,
            self.candidates,
            self.missing,
            at_rest=self.at_rest if at_rest is None else at_rest,
            n_threads=n_threads,
        )
        return EndRows(len(X), codes)

    def table(
        self, rows: Sequence[EndRows], part: Part, n_threads: int, *, at_rest: bool | None = None
    ) -> _core.CertifiedBoosting:
        """Make the table of rows in codes, of which others have more."""
        return _core.CertifiedBoosting(
            [piece.core() for piece in rows],
            self.candidates,
            self.missing,
            at_rest=self.at_rest if at_rest is None else at_rest,
            number=np.empty(0, np.uint32) if part.others is None else part.number(),
            n_all=part.n_all,
            others=part.others,
            n_threads=n_threads,
        )


@dataclass(frozen=True)
class CodedRows:
    """Rows in codes, and what else their values tell; see the core."""

    n_rows: int
    codes: npt.NDArray[np.uint8]
    smallest: FloatArray
    largest: FloatArray
    missing: npt.NDArray[np.uint8]

    def core(self) -> tuple[Any, ...]:
        """The same for the kernels."""
        return (self.n_rows, self.codes, self.smallest, self.largest, self.missing)


@dataclass(frozen=True)
class Cuts:
    """How values become codes: the edges of every feature."""

    edges: list[Float32Array]
    frequent: npt.NDArray[np.uint8]
    max_bins: int
    codes_of_bin: dict[int, list[IntArray]] = field(default_factory=dict)  # of categories

    def margin(self, trees: Trees, rows: CodedRows) -> Float32Array:
        """Margins of rows in codes, for trees whose thresholds are edges."""
        codes = rows.codes.reshape(len(self.edges), rows.n_rows)
        # Every code as its least value, the last one as NaN where values are missing.
        lowest = np.finfo(np.float32).min
        n_codes = len(rows.smallest) // max(len(self.edges), 1)
        least = np.full((len(self.edges), n_codes), np.nan, dtype=np.float32)
        for feature, edges in enumerate(self.edges):
            of_bins = self.codes_of_bin.get(feature)
            if of_bins is None:
                least[feature, : len(edges) + 1] = np.concatenate([[lowest], edges])
            else:  # any of its categories stands for a bin
                least[feature, : len(of_bins)] = [codes[0] for codes in of_bins]
        margin = np.empty((rows.n_rows, trees.n_outputs), dtype=np.float32)
        for begin in range(0, rows.n_rows, _BLOCK):
            some = slice(begin, begin + _BLOCK)
            X = np.stack([least[f, codes[f, some]] for f in range(len(self.edges))], axis=1)
            margin[some] = trees.margin(np.ascontiguousarray(X)).astype(np.float32)
        return margin

    def encode(self, X: npt.NDArray[Any], n_threads: int = 1) -> CodedRows:
        """Put rows, float32 or float64 in C order, into bins."""
        return CodedRows(
            *_core.encode(X, self.edges, self.frequent, max_bins=self.max_bins, n_threads=n_threads)
        )
