"""What every answer about rows can do: become a frame, and say in words what an example changes."""

from html import escape
from typing import Any, ClassVar

import numpy as np

from hardwood.model.given import Changes, Given

_SHOWN = 20  # rows, in a notebook


def frame_of(columns: dict[str, Any], given: Given | None = None) -> Any:
    """Columns as a data frame, with the index of the rows as they were given."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame needs pandas. Install it with: pip install pandas") from None
    return pandas.DataFrame(columns, index=None if given is None else given.index)


def html_of(title: str, frame: Any) -> str:
    """A frame for a notebook, its first rows."""
    dots = f"<p>... {len(frame) - _SHOWN} more rows</p>" if len(frame) > _SHOWN else ""
    return f"<p>{escape(title)}</p>{frame.head(_SHOWN).to_html()}{dots}"


class Answers:
    """Answers row by row, some of them with an example."""

    told: ClassVar[tuple[str, ...]]  # what is said of each row
    given: Given | None
    X_adv: Any

    def to_frame(self) -> Any:
        """Give one line a row.

        Returns
        -------
        pandas.DataFrame
            What is said of each row, and its example: one column per feature, by its name or as
            ``x0``, ``x1``, ... The index is that of the rows as they were given.
        """
        said = {name: getattr(self, name) for name in self.told}
        return frame_of(said, self.given).assign(**self._example_columns(self.X_adv, said))

    def _example_columns(self, X: Any, said: dict[str, Any]) -> dict[str, Any]:
        """The columns of an example; one with the name of something said is told apart."""
        if self.given is not None and self.given.is_frame:
            named = {
                name if isinstance(name, str) else f"x{at}": np.asarray(X[name])
                for at, name in enumerate(X.columns)
            }
        else:
            names = [f"x{f}" for f in range(X.shape[1])]
            if self.given is not None and self.given.names != list(range(X.shape[1])):
                names = self.given.names
            named = {name: X[:, f] for f, name in enumerate(names)}
        return {f"X_adv_{name}" if name in said else name: held for name, held in named.items()}

    def changes(self, row: int) -> Changes:
        """Tell what the example of a row changes.

        Parameters
        ----------
        row : int
            Position of the row.

        Returns
        -------
        Changes
            A tuple of ``(column, old, new)``, in the user's own columns and values; as text, one
            line such as ``income 41,200 -> 41,950; job A -> B``. Empty where there is no example.
        """
        return self._changes(self.X_adv, row)

    def _changes(self, X: Any, row: int) -> Changes:
        if self.given is None:
            raise ValueError("This answer does not know the rows it is about.")
        n = len(self.given.table)
        if not -n <= row < n:
            raise IndexError(f"row must be a position below {n}, got row={row}.")
        trees = self.given.trees
        Z = X if isinstance(X, np.ndarray) or trees is None else trees.rows(X)
        return self.given.changes(np.asarray(Z, dtype=np.float64), row)

    def _repr_html_(self) -> str:
        return html_of(repr(self), self.to_frame())
