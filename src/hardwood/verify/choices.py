"""The values of a row that matter to a model: one of each cell that a threat lets it get into."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import Trees, core_of
from hardwood.threat import Norm, Reach


@dataclass(frozen=True)
class Layout:
    """Where a model cuts its features: what the columns of all rows share."""

    edges: list[FloatArray]  # of each feature: where the doubles go from left to right
    edge: FloatArray  # of each node
    rank: npt.NDArray[np.int64]  # of each node: the place of its threshold among the edges
    sets: dict[int, set[int]]  # of nodes that ask for categories: those that go right
    asks: list[npt.NDArray[np.int64]]  # of each feature: its nodes that ask for categories

    @classmethod
    def of(cls, trees: Trees) -> "Layout":
        """Read it off the trees."""
        edge = np.asarray(core_of(trees).edges())
        numbers = np.isfinite(edge) & ~trees.categorical
        rank = np.zeros(len(edge), dtype=np.int64)
        edges, asks = [], []
        for f in range(trees.n_features):
            nodes = np.flatnonzero(trees.feature == f)
            edges.append(np.unique(edge[nodes[numbers[nodes]]]))
            asks.append(nodes[trees.categorical[nodes]])
            # The edge that belongs to a threshold: the first one that is not left of it.
            rank[nodes] = np.searchsorted(edges[f].astype(trees.x_dtype), trees.threshold[nodes])
        start = trees.category_start
        sets = {
            int(node): set(trees.category[start[node] : start[node + 1]].tolist())
            for node in np.flatnonzero(trees.categorical)
        }
        return cls(edges, edge, rank, sets, asks)


@dataclass
class Column:
    """One feature of a row: its variables, and how far each of its moves is.

    A number has a variable for each edge, 1 where the value is left of it. A category has one for
    each cell, that is for codes which no split tells apart; the first cell is the row's own. A
    value that may be left blank has one more.
    """

    x: float
    first: int = 0  # of its variables
    edges: FloatArray = field(default_factory=lambda: np.empty(0))
    up: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool))
    z: FloatArray = field(default_factory=lambda: np.empty(0))  # the value beyond an edge
    cells: list[int] = field(default_factory=list)  # one code of each
    blank: bool = False
    step: FloatArray = field(default_factory=lambda: np.empty(0))  # of each variable

    @property
    def n_edges(self) -> int:
        """How many of its variables are those of edges."""
        return len(self.edges)

    @property
    def variables(self) -> npt.NDArray[np.int64]:
        """The places of its variables among all."""
        return np.arange(self.first, self.first + len(self.step))

    @property
    def still(self) -> FloatArray:
        """The values of its variables where the row stays as it is."""
        own = np.zeros(len(self.cells))
        own[:1] = 1
        return np.concatenate([self.up, own, np.zeros(int(self.blank))])

    def value(self, solution: FloatArray) -> float:
        """The nearest value that the variables say."""
        mine = solution[self.variables] > 0.5
        if self.blank and mine[-1]:
            return np.nan
        if self.cells:
            return self.x if mine[0] else float(self.cells[int(np.argmax(mine[: len(self.cells)]))])
        crossed = np.flatnonzero(mine[: self.n_edges] != self.up)
        if len(crossed) == 0:
            return self.x
        return float(self.z[crossed.max() if self.up[crossed[0]] else crossed.min()])

    def choices(self) -> tuple[FloatArray, FloatArray]:
        """The values that the column can take, and how far each is; its own comes first."""
        if np.isnan(self.x):
            return np.array([self.x]), np.zeros(1)
        codes = np.array(self.cells[1:], dtype=np.float64)
        value = np.concatenate([self.z, codes, np.full(int(self.blank), np.nan)])
        step = np.delete(self.step, self.n_edges) if self.cells else self.step
        within = np.isfinite(step)
        return np.r_[self.x, value[within]], np.r_[0.0, step[within]]


def columns_of(layout: Layout, x: FloatArray, norm: Norm, reach: Reach) -> list[Column]:
    """All columns of one row."""
    low, high = (np.asarray(end)[0] for end in _core.ball_ends(x[None], reach.ends))
    return [_column(layout, f, float(x[f]), low[f], high[f], norm, reach) for f in range(len(x))]


def _column(
    layout: Layout, f: int, x: float, low: float, high: float, norm: Norm, reach: Reach
) -> Column:
    """A feature; what is missing stays so, and has no variables."""
    if np.isnan(x):
        return Column(x)
    blank, unit = bool(reach.blank[f]), reach.unit if norm != 0 else 1.0
    if len(layout.asks[f]):
        cells = _cells(layout, f, int(x), reach)
        step = np.full(len(cells) + blank, unit)
        step[0] = np.inf  # staying is no step
        return Column(x, cells=cells, blank=blank, step=step)
    edges = layout.edges[f]
    up = edges > x
    z = np.where(up, edges, np.nextafter(edges, -np.inf))
    if reach.whole[f]:
        z = np.where(up, np.ceil(z), np.floor(z))
    size = np.where(reach.share[f] > 0, abs(x), 1.0) * (reach.down_scale[f], reach.up_scale[f])
    with np.errstate(divide="ignore"):
        step = np.abs(z - x) / np.where(up, size[1], size[0])
    step = np.where((low <= z) & (z <= high), step, np.inf)
    step = np.concatenate([step, np.full(int(blank), unit)])
    return Column(x, edges=edges, up=up, z=z, blank=blank, step=step)


def _cells(layout: Layout, f: int, own: int, reach: Reach) -> list[int]:
    """One code of each class that splits tell apart, the row's own first."""
    to = reach.changes.get(f, ())
    known = 0 <= own < len(to) - 1
    codes = to[own if known else -1].tolist() if len(to) else []
    cells: dict[tuple[bool, ...], int] = {}
    for code in [own, *codes]:
        seen = tuple(code in layout.sets[int(node)] for node in layout.asks[f])
        cells.setdefault(seen, code)
    return list(cells.values())
