"""Exact distances of ensembles: ours, a prototype's, Veritas's and a solver's, in one run.

Models are trained once with fixed seeds (natural ones by xgboost, robust ones by hardwood) and
kept under build/bench/distance. Ours and the prototype (compiled if HARDWOOD_PROTOTYPES names the
directory of its source) get all rows of a line; Veritas and HiGHS, through method="milp", get as
many as their budget allows. Times are of the processor, on one thread; a peer is compared on the
rows that it began, and a row that it did not settle counts with the time it was given. Lines on
ijcnn1 and MNIST need HARDWOOD_DATA. Writes distance.md, distance.json and distance.png; exits with
1 when a target is missed.
"""

import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# One thread each, also in the libraries below numpy; must be set before they load.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import xgboost as xgb  # noqa: E402
from sklearn.datasets import load_breast_cancer, make_classification  # noqa: E402
from sklearn.preprocessing import minmax_scale  # noqa: E402

import hardwood as hw  # noqa: E402
from hardwood.verify import ensemble, milp  # noqa: E402
from hardwood.verify.problem import Problem  # noqa: E402

SEED = 20190613
TIME_LIMIT = 60.0  # seconds a row
MEMORY_LIMIT = 500.0  # megabytes over the model
CLOSE = 1e-4  # relative: answers in other arithmetic count as equal
MNIST_ROWS = 20_000  # to train ten classes on: training is not what is measured
SPEEDUP = 1.7  # of two threads
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Model:
    """How a model is trained; eps = 0 is a natural one."""

    data: str
    n_rounds: int
    max_depth: int
    learning_rate: float
    eps: float = 0.0
    min_split_gain: float = 0.0


MODELS = {
    "small": Model("breast_cancer", 60, 6, 0.1),
    "ijcnn1": Model("ijcnn1", 60, 8, 0.3, min_split_gain=1),
    "mnist 2 v. 6": Model("mnist26", 1000, 4, 0.02),
    "mnist 2 v. 6, robust .3": Model("mnist26", 1000, 6, 0.01, eps=0.3),
    "28 features": Model("table28", 300, 8, 0.2, min_split_gain=1),
    "28 features, robust .05": Model("table28", 300, 8, 0.15, eps=0.05, min_split_gain=0.5),
    "mnist": Model("mnist", 200, 8, 0.3),
    "mnist, robust .3": Model("mnist", 200, 8, 0.3, eps=0.3),
    "ten classes": Model("table20", 200, 8, 0.3),
    "ten classes, robust .03": Model("table20", 200, 8, 0.3, eps=0.03),
}


@dataclass(frozen=True)
class Line:
    """One question to one model, and what the answer has to be."""

    model: str
    norm: Any = "inf"
    at_most: float = math.inf  # mean milliseconds a row
    of_veritas: float | None = None  # at most this share of Veritas's time
    settled: float = 1.0  # share of rows within the time limit
    n_rows: int = 40

    @property
    def name(self) -> str:
        """Model and norm."""
        return f"{self.model}, l{self.norm}"


LINES = (
    Line("small", at_most=0.2, of_veritas=1 / 10, n_rows=100),
    Line("ijcnn1", at_most=15, of_veritas=1 / 5, n_rows=100),
    Line("mnist 2 v. 6", at_most=15),
    Line("mnist 2 v. 6, robust .3", at_most=40),
    Line("28 features", at_most=30, of_veritas=1 / 100),
    Line("28 features, robust .05", at_most=300, settled=0.98, n_rows=60),
    Line("mnist", at_most=10),
    Line("mnist, robust .3", at_most=20),
    Line("ten classes", at_most=100, settled=0.99),
    Line("ten classes, robust .03", at_most=300, settled=0.99),
    Line("small", 2, at_most=20),
    Line("ijcnn1", 2, at_most=20),
    Line("mnist 2 v. 6", 2, at_most=250, n_rows=20),
    Line("28 features", 2, at_most=600, n_rows=20),
    Line("small", 1, at_most=20),
    Line("ijcnn1", 1, at_most=20),
    Line("mnist 2 v. 6", 1, at_most=1000, n_rows=20),
    Line("28 features", 1, settled=0.0, n_rows=20),
)


@dataclass
class Answers:
    """What one contestant says, row by row."""

    seconds: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    peak_megabytes: float = math.nan

    def add(self, seconds: float, lower: float, upper: float) -> None:
        """Append one row."""
        self.seconds.append(float(seconds))
        self.lower.append(float(lower))
        self.upper.append(float(upper))

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def settled(self) -> np.ndarray:
        """Rows whose bounds meet."""
        lower, upper = np.array(self.lower), np.array(self.upper)
        return (lower == upper) | (upper - lower <= CLOSE * upper)


# --- data and models ------------------------------------------------------------------------------


def archive(name: str) -> tuple[Rows, Rows]:
    with np.load(Path(os.environ["HARDWOOD_DATA"]) / f"{name}.npz") as file:
        X, X_test = file["X_train"], file["X_test"]
        if X.dtype == np.uint8:
            X, X_test = X / 255.0, X_test / 255.0
        return (X, file["y_train"].astype(int)), (X_test, file["y_test"].astype(int))


def table(n: int, n_test: int, **shape: Any) -> tuple[Rows, Rows]:
    X, y = make_classification(n + n_test, random_state=SEED, **shape)
    X = minmax_scale(X)
    return (X[:n], y[:n]), (X[n:], y[n:])


def load_data(name: str) -> tuple[Rows, Rows]:
    """Training rows and test rows."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        order = np.random.default_rng(SEED).permutation(len(X))
        X, y = minmax_scale(X)[order], y[order]
        return (X[:400], y[:400]), (X[400:], y[400:])
    if name == "table28":
        shape = {"n_informative": 16, "n_redundant": 4, "n_clusters_per_class": 8}
        return table(200_000, 5_000, n_features=28, class_sep=0.7, **shape)
    if name == "table20":
        shape = {"n_informative": 14, "n_redundant": 2, "n_clusters_per_class": 2}
        return table(50_000, 5_000, n_features=20, n_classes=10, class_sep=1.0, **shape)
    if name == "mnist26":
        (X, y), (X_test, y_test) = archive("mnist")
        some, some_test = np.isin(y, (2, 6)), np.isin(y_test, (2, 6))
        return (
            (X[some], (y[some] == 6).astype(int)),
            (X_test[some_test], (y_test[some_test] == 6).astype(int)),
        )
    (X, y), rest = archive(name)
    most = MNIST_ROWS if name == "mnist" else len(X)
    return (X[:most], y[:most]), rest


def train(model: Model, X: np.ndarray, y: np.ndarray) -> hw.Trees:
    n_classes = len(np.unique(y))
    if model.eps:
        robust = hw.RobustGradientBoostingClassifier(
            eps=model.eps,
            inner="paper",
            n_estimators=model.n_rounds,
            max_depth=model.max_depth,
            learning_rate=model.learning_rate,
            min_split_gain=model.min_split_gain,
            base_score=0.5 if n_classes == 2 else np.zeros(n_classes),
            random_state=0,
            n_jobs=-1,
        )
        return robust.fit(X, y).trees_
    settings: dict[str, Any] = {"objective": "binary:logistic"}
    if n_classes > 2:
        settings = {"objective": "multi:softprob", "num_class": n_classes}
    settings |= {
        "max_depth": model.max_depth,
        "eta": model.learning_rate,
        "gamma": model.min_split_gain,
        "base_score": 0.5,
        "tree_method": "hist",
        "nthread": os.cpu_count(),
        "seed": 0,
    }
    rows = xgb.DMatrix(X.astype(np.float32), y)
    return hw.load_model(xgb.train(settings, rows, model.n_rounds))


def get_model(name: str, directory: Path) -> tuple[Path, Rows]:
    """The file of a model and test rows that it gets right, from the cache if they are there."""
    stem = name.replace(", ", "-").replace(". ", "").replace(" ", "-").replace(".", "")
    path, rows = directory / f"{stem}.json", directory / f"{stem}.npz"
    if not rows.exists():
        directory.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        (X, y), (X_test, y_test) = load_data(MODELS[name].data)
        trees = train(MODELS[name], X, y)
        trees.save_model(path)
        X_test = X_test.astype(np.float32).astype(np.float64)  # what every contestant can read
        right = np.flatnonzero(trees.predict_class(X_test) == y_test)
        some = right[np.linspace(0, len(right) - 1, 200).astype(int)]
        np.savez(rows, X=X_test[some], y=y_test[some])
        seconds = time.perf_counter() - begin
        score = len(right) / len(y_test)
        print(f"trained {name} in {seconds:.0f} s, accuracy {score:.3f}", flush=True)
    with np.load(rows) as file:
        return path, (file["X"], file["y"])


# --- contestants ----------------------------------------------------------------------------------


def status_megabytes(key: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    raise LookupError(key)


def search(path: Path, X: np.ndarray, y: np.ndarray, norm: Any, n_jobs: int) -> Answers:
    """Our answers, in a process of its own so that its memory is seen."""
    problem = Problem.of(hw.load_model(path), X, y, n_jobs)
    reach = hw.Threat(1, norm=norm).reach(X.shape[1]).without_radius()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
    before = status_megabytes("VmRSS")
    found = ensemble.nearest(problem, norm, reach, ensemble.Effort(TIME_LIMIT))
    peak = status_megabytes("VmHWM") - before
    return Answers(found.seconds.tolist(), found.lower.tolist(), found.upper.tolist(), peak)


def in_own_process(function: Any, *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def ask_milp(path: Path, X: np.ndarray, y: np.ndarray, norm: Any, budget: float) -> Answers:
    trees = hw.load_model(path)
    reach = hw.Threat(1, norm=norm).reach(X.shape[1]).without_radius()
    answers = Answers()
    for i in rows_within(budget, len(X)):
        problem = Problem.of(trees, X[i : i + 1], y[i : i + 1], 1)
        begin = time.process_time()
        found = milp.nearest(problem, norm, reach, ensemble.Effort(min(budget, TIME_LIMIT)))
        answers.add(time.process_time() - begin, found.lower[0], found.upper[0])
    return answers


def ask_veritas(path: Path, X: np.ndarray, y: np.ndarray, start: np.ndarray, budget: float):
    """Veritas's bisection, helped: it starts at twice the true distance."""
    import veritas

    class Patient(veritas.VeritasRobustnessSearch):
        def get_step_time(self) -> float:  # its own gives every step an equal share of the time
            return self.max_time - (time.perf_counter() - self.begin)

    booster = xgb.Booster(model_file=path)
    trees = veritas.get_addtree(booster, silent=True)
    answers = Answers()
    for i in rows_within(budget, len(X)):
        begin = time.process_time()
        search = Patient(
            X[i].astype(np.float32),
            2 * start[i] + 1e-6,
            trees if y[i] == 1 else None,
            None if y[i] == 1 else trees,
            num_steps=60,
            max_time=TIME_LIMIT,
            silent=True,
        )
        search.begin = time.perf_counter()
        _, lower, upper = search.search()
        # What the clock stops counts as possible there, so only examples make an upper bound.
        steps = [np.abs(np.asarray(z) - X[i]).max() for z in search.generated_examples]
        found = min(steps, default=math.inf)
        answers.add(time.process_time() - begin, lower, max(upper, found - 2e-4))
    return answers


def rows_within(budget: float, n: int) -> Iterator[int]:
    begin = time.perf_counter()
    for i in range(n):
        if time.perf_counter() - begin > budget:
            return
        yield i


def build_prototype(source: Path, directory: Path) -> Path:
    program = directory / "prototype"
    if not program.exists():
        compiler = os.environ.get("CXX", "g++")
        words = [compiler, "-O3", "-march=native", "-std=c++17", "-w", "-o", str(program)]
        subprocess.run([*words, str(source / "exact_distance.cpp")], check=True)
    return program


def ask_prototype(
    program: Path, path: Path, X: np.ndarray, y: np.ndarray, norm: Any, cache: Path
) -> Answers:
    trees = hw.load_model(path)
    lines = [str(trees.n_trees)]
    for k in range(trees.n_trees):
        nodes = range(trees.tree_start[k], trees.tree_start[k + 1])
        lines.append(str(len(nodes)))
        for at in nodes:
            inner = trees.feature[at] >= 0
            number = trees.threshold[at] if inner else trees.value[at, 0]
            ends = (trees.left[at], trees.right[at], trees.feature[at]) if inner else (-1, -1, 0)
            lines.append(f"{ends[0]} {ends[1]} {ends[2]} {number:.9g}")
    lines.append(f"{len(X)} {X.shape[1]}")
    lines += [f"{y[i]} " + " ".join(f"{v:.9g}" for v in X[i]) for i in range(len(X))]
    cache.write_text("\n".join(lines) + "\n")
    order = {"inf": 0, 1: 1, 2: 2}[norm]
    words = [program, cache, len(X), TIME_LIMIT, max(2, trees.n_outputs), "-", order]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    answers = Answers()
    for line in done.stdout.splitlines():
        word = line.split()
        answers.add(float(word[1]), float(word[6]), float(word[4]))
    cache.unlink()
    return answers


# --- lines ----------------------------------------------------------------------------------------


@dataclass
class Result:
    """What all contestants say on one line."""

    line: Line
    ours: Answers
    peers: dict[str, Answers]

    def ratio(self, peer: str) -> float:
        """Our time over a peer's, on the rows that it began; NaN without it."""
        other = self.peers.get(peer)
        if not other:
            return math.nan
        return float(np.mean(self.ours.seconds[: len(other)]) / np.mean(other.seconds))

    def disagreements(self, peer: str) -> int:
        """Rows that both settled and on which they differ; the peers' arithmetic is coarser."""
        other = self.peers[peer]
        both = self.ours.settled[: len(other)] & other.settled
        mine, theirs = np.array(self.ours.upper[: len(other)]), np.array(other.upper)
        return int(np.sum(both & (np.abs(mine - theirs) > 1e-3 * theirs + 3e-4)))

    @property
    def missed(self) -> list[str]:
        """Targets that are missed, in words."""
        line, mean = self.line, 1e3 * float(np.mean(self.ours.seconds))
        misses = []
        to_prototype, to_veritas = self.ratio("prototype"), self.ratio("veritas")
        # Machines differ: beside the prototype, the ratio is what counts.
        if to_prototype > 1 or (mean > line.at_most and math.isnan(to_prototype)):
            misses.append("time")
        if line.of_veritas is not None and to_veritas > line.of_veritas:
            misses.append("Veritas")
        if np.mean(self.ours.settled) < line.settled:
            misses.append("settled")
        if self.ours.peak_megabytes > MEMORY_LIMIT:
            misses.append("memory")
        misses += [f"differs from {peer}" for peer in self.peers if self.disagreements(peer)]
        return misses

    def row(self) -> list[str]:
        """Cells of the table."""
        milliseconds = 1e3 * np.array(self.ours.seconds)
        times = (milliseconds.mean(), np.median(milliseconds), milliseconds.max())
        limit = f"{self.line.at_most:g}" if self.line.at_most < math.inf else "-"
        cells = [self.line.name, " / ".join(f"{t:.3g}" for t in times), limit]
        for peer in ("prototype", "veritas", "milp"):
            ratio = self.ratio(peer)
            n = len(self.peers.get(peer, ()))
            cells.append("-" if math.isnan(ratio) else f"{ratio:.2g} ({n})")
        cells.append(f"{np.sum(self.ours.settled)} of {len(self.ours)}")
        cells.append(f"{self.ours.peak_megabytes:.0f}")
        cells.append("missed: " + ", ".join(self.missed) if self.missed else "met")
        return cells


HEADER = (
    "line",
    "ours, ms: mean / median / max",
    "target, ms",
    "of the prototype (rows)",
    "of Veritas (rows)",
    "of HiGHS (rows)",
    "settled",
    "MB over the model",
    "verdict",
)


def run(line: Line, options: argparse.Namespace) -> Result:
    path, (X, y) = get_model(line.model, options.output / "models")
    n = min(options.rows or line.n_rows, len(X))
    X, y = X[:n], y[:n]
    result = Result(line, in_own_process(search, path, X, y, line.norm, 1), {})
    if options.prototypes and "prototype" not in options.skip:
        program = build_prototype(Path(options.prototypes), options.output)
        cache = options.output / "prototype.txt"
        result.peers["prototype"] = ask_prototype(program, path, X, y, line.norm, cache)
    if y.max() == 1:
        start = np.array(result.ours.upper)
        if "veritas" not in options.skip and line.norm == "inf":
            budget = options.budget if line.of_veritas else options.budget / 4
            result.peers["veritas"] = in_own_process(ask_veritas, path, X, y, start, budget)
        if "milp" not in options.skip:
            budget = options.budget / 4
            result.peers["milp"] = in_own_process(ask_milp, path, X, y, line.norm, budget)
    return result


def wall_seconds(path: Path, X: np.ndarray, y: np.ndarray, n_jobs: int) -> float:
    problem = Problem.of(hw.load_model(path), X, y, n_jobs)
    reach = hw.Threat(1).reach(X.shape[1]).without_radius()
    begin = time.perf_counter()
    ensemble.nearest(problem, "inf", reach, ensemble.Effort(TIME_LIMIT))
    return time.perf_counter() - begin


def speedup(options: argparse.Namespace) -> float:
    """How much faster two threads are: best of several turns each, since others use the machine."""
    path, (X, y) = get_model("mnist 2 v. 6", options.output / "models")
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)  # two seconds, of which loading is little
    os.environ["OMP_NUM_THREADS"] = "2"
    turns = [[in_own_process(wall_seconds, path, X, y, n) for n in (1, 2)] for _ in range(4)]
    one, two = np.min(turns, axis=0)
    return float(one / two)


def plot(results: list[Result], path: Path) -> None:
    """Rows settled against time, one panel a line."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    n_columns = min(3, len(results))
    n_rows = math.ceil(len(results) / n_columns)
    figure, panels = plt.subplots(
        n_rows, n_columns, figsize=(4 * n_columns, 2.6 * n_rows), squeeze=False
    )
    for panel in panels.flat[len(results) :]:
        panel.set_visible(False)
    names = {"hardwood": "C0", "prototype": "C7", "veritas": "C1", "milp": "C2"}
    for panel, result in zip(panels.flat, results, strict=False):
        for name, answers in {"hardwood": result.ours, **result.peers}.items():
            if not len(answers):
                continue
            times = np.sort(np.array(answers.seconds)[answers.settled])
            share = np.arange(1, len(times) + 1) / len(answers)
            panel.step(
                [*times, TIME_LIMIT], [*share, *share[-1:]] if len(times) else [0.0],
                where="post", color=names[name], label=f"{name} ({len(answers)} rows)",
            )  # fmt: skip
        panel.set(xscale="log", xlim=(2e-5, TIME_LIMIT), ylim=(0, 1.05))
        panel.set_title(result.line.name, fontsize=9)
        panel.legend(fontsize=6, loc="lower right")
    figure.supxlabel("seconds of the processor for a row")
    figure.supylabel("share of rows settled")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def markdown(rows: list[list[str]]) -> str:
    every = [list(HEADER), ["---"] * len(HEADER), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in every) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", default="", help="only lines whose name contains this")
    parser.add_argument("--norm", choices=("inf", "1", "2"), help="only lines in this norm")
    parser.add_argument("--rows", type=int, help="rows a line, instead of its own number")
    parser.add_argument("--budget", type=float, default=100, help="seconds a line for slow peers")
    parser.add_argument(
        "--skip", nargs="*", default=[], choices=("prototype", "veritas", "milp", "threads")
    )
    parser.add_argument("--prototypes", default=os.environ.get("HARDWOOD_PROTOTYPES"))
    parser.add_argument("--output", type=Path, default=Path("build/bench/distance"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    missing = "HARDWOOD_DATA" not in os.environ
    results, rows = [], []
    print(" | ".join(HEADER))
    for line in LINES:
        if options.lines not in line.name or str(line.norm) != (options.norm or str(line.norm)):
            continue
        if missing and MODELS[line.model].data.startswith(("mnist", "ijcnn1")):
            print(f"{line.name}: skipped, HARDWOOD_DATA does not name a directory", flush=True)
            continue
        results.append(run(line, options))
        rows.append(results[-1].row())
        print(" | ".join(rows[-1]), flush=True)
    passed = all(not result.missed for result in results)
    content: dict[str, Any] = {
        "version": hw.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg(),  # a busy machine makes times waver and leaves no second core
        "results": [asdict(r) for r in results],
    }
    notes = ""
    if "threads" not in options.skip and not missing:
        content["speedup of two threads"] = faster = speedup(options)
        passed &= faster >= SPEEDUP
        verdict = "met" if faster >= SPEEDUP else "missed"
        notes = f"\nTwo threads: {faster:.2f} times as fast as one, target {SPEEDUP}, {verdict}.\n"
        print(notes)
    (options.output / "distance.md").write_text(markdown(rows) + notes)
    (options.output / "distance.json").write_text(json.dumps(content, indent=1) + "\n")
    if results:
        plot(results, options.output / "distance.png")
    print(f"table, answers and plot in {options.output}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
