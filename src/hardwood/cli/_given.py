"""What a command is given: tables, models and threats, read from files; and what it shows."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import typer

import hardwood as hw

TABLES = ".csv, .csv.gz, .tsv, .parquet, .feather, .svm, .libsvm or .npz"
_PICKLED = (".pkl", ".pickle", ".joblib")

Model = Annotated[
    Path,
    typer.Argument(
        help="A file of XGBoost, LightGBM, CatBoost, ONNX or hardwood; pickles with --trust."
    ),
]
Data = Annotated[Path, typer.Argument(help=f"Rows: {TABLES}.")]
Label = Annotated[str | None, typer.Option("--label", help="The column of the true labels.")]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="What the column of labels calls the model's 0, 1, ...: such as no,yes.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Open pickled models, which can run any code: only your own files."
    ),
]
Eps = Annotated[float | None, typer.Option("--eps", help="How far every value can be moved.")]
Share = Annotated[
    float | None,
    typer.Option("--share", help="How far, as a share of each column's spread, such as 0.1."),
]
ThreatFile = Annotated[
    Path | None, typer.Option("--threat", help="A TOML file that describes the adversary.")
]
NormOption = Annotated[
    str, typer.Option("--norm", help="inf, 1, 2 or 0: how a change is measured, with --eps.")
]
Low = Annotated[float | None, typer.Option("--low", help="Smallest valid value, with --eps.")]
High = Annotated[float | None, typer.Option("--high", help="Largest valid value, with --eps.")]
Seconds = Annotated[float | None, typer.Option("--time-limit", help="Seconds for each row.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="The probability from which the second class is said."),
]
Jobs = Annotated[int | None, typer.Option("--n-jobs", help="Threads; all cores by default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
FailUnder = Annotated[
    float | None,
    typer.Option(
        "--fail-under", help="End with code 1 if the certified accuracy is below this share."
    ),
]


@dataclass(frozen=True)
class Table:
    """Rows, and their labels where the file has any."""

    X: Any
    y: npt.NDArray[Any] | None

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The labels, which the command needs."""
        if self.y is None:
            raise ValueError(
                "The labels are missing; say which column holds them with --label COLUMN"
                + (f", one of {_shown(self.X.columns)}." if hasattr(self.X, "columns") else ".")
            )
        return self.y

    def called(self, classes: str | None, model: Any) -> "Table":
        """The same rows with labels as the model has them, if the file calls them otherwise."""
        words = self.y is not None and self.y.dtype.kind in "OUT"
        own = _labels_of(model) if words or classes is not None else None
        if self.y is None or own is None:
            return self
        if classes is None and any(label in own for label in self.y.tolist()):
            return self
        found = sorted(map(str, set(self.y.tolist())))
        names = class_names(classes) or []
        if classes is None and len(found) > len(own):
            raise ValueError(
                f"The labels are called {_shown(found)} in the file, and {_shown(own)} by the "
                f"model; check that --label names the column that the model predicts."
            )
        if len(names) != len(own) or not set(found) <= set(names):
            wanted = found if len(found) == len(own) else [f"NAME{k}" for k in own]
            raise ValueError(
                f"The labels are called {_shown(found)} in the file, and {_shown(own)} by the "
                f"model; say what the model's {', '.join(map(str, own))} are called, in this "
                f"order, such as --classes {','.join(wanted)}."
            )
        number = dict(zip(names, own, strict=True))
        return Table(self.X, np.array([number[str(label)] for label in self.y]))

    def half(self, which: int) -> "Table":
        """The first or the second half of the rows in an order of chance, the same every time."""
        order = np.random.RandomState(0).permutation(len(self.labels))
        rows = np.sort(order[which::2])
        X = self.X.iloc if hasattr(self.X, "iloc") else self.X
        return Table(X[rows], self.labels[rows])


def class_names(classes: str | None) -> list[str] | None:
    """The names that --classes gives, in the order of the model's classes."""
    return None if classes is None else [name.strip() for name in classes.split(",")]


def read_table(path: Path, label: str | None = None, n_columns: int | None = None) -> Table:
    """Read rows from a file of any kind that the command line knows."""
    if not path.exists():
        raise ValueError(f"{str(path)!r} does not exist; check the name of the data file.")
    kind = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if kind in (".npz",):
        return _from_npz(path)
    if kind in (".svm", ".libsvm", ".svmlight"):
        return _from_libsvm(path, n_columns)
    frame = _frame(path, kind)
    if label is None:
        return Table(frame, None)
    if label not in frame.columns:
        raise ValueError(
            f"{path.name} has no column {label!r} for --label; its columns are "
            f"{_shown(frame.columns)}."
        )
    y = frame[label]
    if y.isna().any():
        raise ValueError(
            f"Column {label!r} of {path.name} has {int(y.isna().sum())} rows without a label; "
            f"leave these rows out."
        )
    return Table(frame.drop(columns=label), y.to_numpy())


def _frame(path: Path, kind: str) -> Any:
    if find_spec("pandas") is None:
        raise ImportError('Tables need pandas. Install it with: pip install "hardwood[cli]"')
    import pandas as pd

    readers: dict[str, Callable[[], Any]] = {
        ".csv": lambda: pd.read_csv(path),
        ".csv.gz": lambda: pd.read_csv(path),
        ".tsv": lambda: pd.read_csv(path, sep="\t"),
        ".parquet": lambda: pd.read_parquet(path),
        ".feather": lambda: pd.read_feather(path),
    }
    if kind not in readers:
        raise ValueError(f"{path.name} is of no type known here; rows come as {TABLES}.")
    if kind in (".parquet", ".feather") and find_spec("pyarrow") is None:
        raise ImportError(
            f'{kind} files need pyarrow. Install it with: pip install "hardwood[data]"'
        )
    try:
        frame = readers[kind]()
    except (ValueError, pd.errors.ParserError, OSError) as error:
        first = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(f"{path.name} could not be read as {kind}: {first}.") from None
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no rows.")
    return frame


def _from_npz(path: Path) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            if "X" not in file:
                raise ValueError(
                    f"{path.name} has no array X; an .npz file needs X, and y for the labels. It "
                    f"has {_shown(file.files)}."
                )
            X, y = file["X"], file["y"] if "y" in file else None
    except (OSError, BadZipFile) as error:
        raise ValueError(f"{path.name} could not be read as .npz: {error}.") from None
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise ValueError(
            f"{path.name} is no .npz file, or holds arrays of objects; write numbers and texts "
            f"(y.astype(str)) with numpy.savez."
        ) from None
    return Table(X, y)


def _from_libsvm(path: Path, n_columns: int | None) -> Table:
    """Rows as they are stored: what is missing to one library is 0 to another.

    Files count columns from 1, or as XGBoost and LightGBM read them: from 0. Where no row has a
    column 0, the model's number of columns tells.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except ValueError as error:
        raise ValueError(f"{path.name} could not be read as LIBSVM: {error}.") from None
    if X[:, :1].nnz == 0 and X.shape[1] != n_columns:
        X = X[:, 1:]
    if n_columns is not None and X.shape[1] < n_columns:
        warnings.warn(
            f"{path.name} names {X.shape[1]} of the model's {n_columns} columns; the last ones are "
            f"taken as empty. Columns are counted from 1, unless the file has a column 0.",
            stacklevel=2,
        )
        X.resize(X.shape[0], n_columns)
    whole = y.astype(np.int64)
    return Table(X, whole if np.array_equal(whole, y) else y)


def _shown(names: Any) -> str:
    listed = [repr(str(name)) for name in names]
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "")


def open_model(path: Path, trust: bool = False) -> Any:
    """Open a model file; where the library that wrote it is there, as that library's own object.

    Then the gate compares both, and every example is replayed through the library itself.
    """
    if not path.exists():
        raise ValueError(f"{str(path)!r} does not exist; check the name of the model file.")
    if path.suffix in _PICKLED or path.suffix == ".skops":
        return _pickled(path, trust)
    if path.suffix == ".cbm" and find_spec("catboost"):
        return _catboost(path)
    trees = hw.load_model(path)
    return _own_library(path) or trees


def _catboost(path: Path) -> Any:
    """A model in the binary format that only CatBoost itself reads."""
    import catboost

    try:
        return catboost.CatBoost().load_model(str(path))
    except catboost.CatBoostError as error:
        raise ValueError(f"{path.name} could not be opened by CatBoost: {error}.") from None


def _own_library(path: Path) -> Any:
    try:
        if path.suffix in (".json", ".ubj") and find_spec("xgboost"):
            import xgboost

            booster = xgboost.Booster(model_file=path)
            # Our own files say more than XGBoost reads: classes, for one.
            return None if booster.attr("hardwood") else booster
        if path.suffix == ".txt" and find_spec("lightgbm"):
            import lightgbm

            return lightgbm.Booster(model_file=path)
    except Exception:  # a dump, another tool's file, another version: the file itself was read
        return None
    return None


def _labels_of(model: Any) -> list[Any] | None:
    """What a classifier calls its labels; None: it has none."""
    if hasattr(model, "classes_"):
        return list(np.asarray(model.classes_).tolist())
    trees = hw.load_model(model)
    if not trees.tells_labels:
        return None
    return list(range(trees.n_classes)) if trees.classes is None else trees.classes.tolist()


def _pickled(path: Path, trust: bool) -> Any:
    if not trust:
        raise ValueError(
            f"{path.name} is a pickled object, and opening one runs whatever code is in it; pass "
            f"--trust if it is yours. A model file of its library (.json, .txt, .onnx) needs "
            f"no trust."
        )
    try:
        if path.suffix == ".skops":
            from skops import io

            return io.load(path, trusted=io.get_untrusted_types(file=path))
        import joblib

        return joblib.load(path)
    except ImportError as error:
        raise ImportError(f"{path.name} needs a package that is not here: {error}.") from None
    except Exception as error:
        raise ValueError(
            f"{path.name} could not be opened: {type(error).__name__}: {error}."
        ) from None


def column_count(model: Any) -> int | None:
    """How many columns a model takes, where it says so."""
    for name in ("n_features", "n_features_in_"):
        if isinstance(getattr(model, name, None), int):
            return int(getattr(model, name))
    for name in ("num_features", "num_feature"):  # Boosters of XGBoost and of LightGBM
        if callable(getattr(model, name, None)):
            return int(getattr(model, name)())
    return None


def read_threat(
    file: Path | None,
    eps: float | None,
    norm: str,
    low: float | None,
    high: float | None,
    share: float | None = None,
    X: Any = None,
) -> hw.Threat:
    """The adversary, from a file, from a number, or from the spread of the columns of X."""
    if sum(one is not None for one in (file, eps, share)) != 1:
        raise ValueError(
            "Say what the adversary may do, in one way: --eps NUMBER, --share NUMBER or --threat "
            "FILE."
        )
    if eps is not None:
        return hw.Threat(eps, norm=norm_of(norm), low=low, high=high)
    if low is not None or high is not None or norm != "inf":
        where = "" if file is None else f"; write them into {file.name}"
        raise ValueError(f"--low, --high and --norm go with --eps{where}.")
    if file is None:
        return hw.Threat.from_frame(X, share=float(share or 0))
    if not file.exists():
        raise ValueError(f"{str(file)!r} does not exist; check the name of the threat file.")
    return hw.Threat.from_toml(file)


def norm_of(given: str) -> Any:
    """The norm that a word of the command line means."""
    return given if given == "inf" else (int(given) if given.isdigit() else given)


def writable(path: Path) -> Path:
    """Refuse a file that cannot be written before hours are spent on its content."""
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(
            f"{str(path)!r} cannot be written: "
            + ("it is a directory." if path.is_dir() else f"there is no directory {path.parent}.")
        )
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be written: {error.strerror}.") from None
    if path.stat().st_size == 0:
        path.unlink()
    return path


def _ending(path: Path) -> str:
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def writable_rows(path: Path) -> Path:
    """Refuse a name that no table can be written to, before any work is done."""
    if _ending(path) not in (".csv", ".csv.gz", ".parquet", ".feather"):
        raise ValueError(f"{path.name} must end in .csv, .csv.gz, .parquet or .feather.")
    return writable(path)


def write_rows(path: Path, frame: Any) -> None:
    """Write a table by the ending of its name, one that `writable_rows` takes."""
    kind = _ending(path)
    if kind == ".parquet":
        frame.to_parquet(path, index=False)
    elif kind == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False)


def show(facts: dict[str, Any], as_json: bool) -> None:
    """Print the answer: one fact a line, or all of them as JSON."""
    if as_json:
        typer.echo(json.dumps(facts, indent=1, default=str))
        return
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {_said(fact)}")


def _said(fact: Any) -> str:
    return f"{fact:.4g}" if isinstance(fact, float) else str(fact)


def share(part: int, whole: int) -> str:
    """A share with its counts."""
    return f"{part / whole:.3f} ({part:,} of {whole:,})"


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar with the time left on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeLeft())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield tell


def rows_done(
    tell: Callable[[str, int, int], None] | None, stage: str
) -> Callable[[int, int, int], None] | None:
    """The library's progress of rows, as one stage of the bar."""
    if tell is None:
        return None
    return lambda done, undecided, rows: tell(stage, done, rows)


def share_of(least: float | None) -> None:
    """Refuse a --fail-under that is no share."""
    if least is not None and not 0 <= least <= 1:
        raise ValueError(f"--fail-under must be a share from 0 to 1, such as 0.6, got {least:g}.")


def fail_under(certified: float, least: float | None) -> None:
    """End with code 1 where too little is proven."""
    if least is not None and certified < least:
        typer.echo(
            f"hardwood: certified accuracy {certified:.4f} is below --fail-under {least:g}.",
            err=True,
        )
        raise typer.Exit(1)
