"""Throw broken model files and reports of every format at the door, for a while.

Every model must load as one that predicts, or end in ModelFileError or UnsupportedModelError; every
report must be checked and drawn, or end in ValueError; within a second, and in memory of the size
of the file. Run by ``make fuzz``, which prints how many inputs of each format were tried; a failing
input is written to fuzz-failure.bin. The inputs are tried in a process of their own, which another
one watches: so crashes and hangs leave their input behind, too.
"""

import argparse
import json
import mmap
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np

import hardwood as hw
from hardwood.model import ubjson
from hardwood.model.load import load_bytes, xgboost_dump
from hardwood.model.load.xgboost_dump import Unsaid
from hardwood.model.xgboost.write import document_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from samples import random_trees

MEMORY = 20  # times the size of the file, beside what an empty model takes
ROOM = 4 << 20
SLOW = 1.0  # seconds of the processor
MEASURED = 200  # one input in so many has its memory measured by Python, which takes time
HANGS = 60  # seconds after which an input is given up; a busy machine is no reason
LONGEST = 1 << 20  # bytes of an input
SLICE = 0.2  # seconds that one format gets before the next one has its turn
NASTY = [0, 1, -1, 2, 127, 255, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, 10**30, 0.5, 1e308, -0.0]
NASTY += [float("nan"), float("inf"), None, True, "", "1", "-1", "9" * 400, [], {}, [[]], [None]]

LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
objective=binary sigmoid:1
feature_names=a b
tree_sizes=100

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
threshold=0.5 1.0000000180025095e-35
decision_type=2 8
left_child=1 -1
right_child=-3 -2
leaf_value=0.1 -0.2 0.3
is_linear=0

end of trees
"""
CATBOOST = {
    "features_info": {"float_features": [{"flat_feature_index": f} for f in range(2)]},
    "oblivious_trees": [
        {
            "leaf_values": [0.0, 1.0, 2.0, 3.0],
            "splits": [{"float_feature_index": f, "border": 0.5} for f in range(2)],
        }
    ],
    "scale_and_bias": [1, [0]],
}


LIGHTGBM_CATEGORIES = (
    LIGHTGBM.replace("num_cat=0", "num_cat=1")
    .replace("threshold=0.5 1.0000000180025095e-35", "threshold=0.5 0")
    .replace("decision_type=2 8", "decision_type=2 1")
    .replace("is_linear=0", "cat_boundaries=0 2\ncat_threshold=10 4\nis_linear=0")
    .replace("feature_names=a b", "feature_names=a b\nfeature_infos=[0:1] 1:3:34")
    + 'pandas_categorical:[["x", "y", "z"]]\n'
)


def with_categories(trees):
    """The same trees, every other split on categories."""
    split = (trees.feature >= 0) & (np.arange(trees.n_nodes) % 2 == 0)
    start = np.concatenate([[0], np.cumsum(2 * split)])
    state = {**trees.__getstate__(), "category_start": start}
    state["category"] = np.tile([1, 4], int(split.sum()))
    return hw.Trees(**{**state, "category_names": {0: ["a", "b"], 2: []}})


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def documents():
    rng = np.random.default_rng(0)
    kinds = [
        {"link": "logistic", "base": [0.5], "classes": ["a", "b"]},
        {"n_outputs": 3, "n_values": 3, "link": "share", "feature_names": list("abcd")},
        {"dtype": "f8", "n_outputs": 2, "link": "softmax", "metadata": {"threat": hw.Threat(0.1)}},
    ]
    for kind in kinds:
        yield document_of(random_trees(rng, n_trees=2, depth=2, **kind))
    categories = document_of(with_categories(random_trees(rng, n_trees=2, depth=2)))
    yield categories
    # As XGBoost writes names: without our note.
    bare = {**categories["learner"], "attributes": {}}
    bare["gradient_booster"]["model"]["cats"]["enc"] = [
        {"offsets": [0, 1, 3], "values": [97, 98, 99]},
        {"type": 15, "values": [0, 10]},
    ]
    yield {**categories, "learner": bare}
    yield CATBOOST


def onnx_models():
    rng = np.random.default_rng(0)
    for kind in ({"link": "logistic"}, {"n_outputs": 3, "n_values": 3}):
        yield random_trees(rng, n_trees=3, depth=2, **kind).to_onnx()


def change_onnx(rng, data):
    """Other numbers, longer or shorter lists, other words in the attributes of an ensemble."""
    import onnx

    proto = onnx.ModelProto.FromString(data)
    attributes = proto.graph.node[0].attribute
    for _ in range(rng.choice([1, 1, 2, 4])):
        attribute = rng.choice(attributes)
        values = rng.choice(
            [field for field in ("ints", "floats", "strings") if len(getattr(attribute, field))]
            or ["i"]
        )
        if values == "i":
            attribute.i = rng.choice([0, -1, 2, 10**9, 2**62])
            continue
        listed = getattr(attribute, values)
        at = rng.randrange(len(listed))
        nasty = {
            "ints": [0, -1, 1, 3, 2**31, 2**62, -(2**63)],
            "floats": [float("nan"), float("inf"), -1e38, 0.0],
            "strings": [b"LEAF", b"BRANCH_LT", b"BRANCH_GTE", b"BRANCH_EQ", b"\xff"],
        }
        move = rng.random()
        if move < 0.7:
            listed[at] = rng.choice(nasty[values])
        elif move < 0.85:
            del listed[at]
        else:
            listed.extend([listed[at]] * rng.choice([1, 1000]))
    return proto.SerializeToString()


def spots(document):
    """All places of a document, as holder and key; the note is a document inside."""
    found, open_values = [], [document]
    while open_values:
        value = open_values.pop()
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            found.append((value, key))
            if isinstance(value[key], dict | list):
                open_values.append(value[key])
    return found


def change_structure(rng, text):
    document = json.loads(text)
    learner = document.get("learner", {}) if isinstance(document, dict) else {}
    note = learner.get("attributes", {}).get("hardwood")
    inner = json.loads(note) if note is not None and rng.random() < 0.4 else None
    places = spots(document if inner is None else inner)
    for holder, key in rng.choices(places, k=rng.choice([1, 1, 1, 2, 4])):
        if key not in (holder if isinstance(holder, dict) else range(len(holder))):
            continue  # gone by an earlier change
        move = rng.random()
        if move < 0.6:
            holder[key] = copied(rng.choice(NASTY))
        elif move < 0.8:
            other, other_key = rng.choice(places)
            if other_key in (other if isinstance(other, dict) else range(len(other))):
                holder[key] = copied(other[other_key])
        elif isinstance(holder, list):
            many = 3 if isinstance(holder[key], dict | list) else 1000
            holder[key:key] = holder[key : key + 1] * rng.choice([0, 1, many])
        else:
            del holder[key]
    if inner is not None:
        document["learner"]["attributes"]["hardwood"] = json.dumps(inner)
    return json.dumps(document).encode()


def copied(value):
    """So that later changes do not go to both places, and nothing holds itself."""
    return json.loads(json.dumps(value)) if isinstance(value, dict | list) else value


def change_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        data = data or bytearray(b"{")
        at = rng.randrange(len(data))
        move = rng.random()
        if move < 0.3:
            data[at] = rng.randrange(256)
        elif move < 0.5:
            data[at : at + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        elif move < 0.6:
            data = data[:at] or bytearray(b"{")
        elif move < 0.7:
            data[at:at] = rng.choice([b"[", b"{", b'{"a":', b"[#L", b"9"]) * rng.choice([1, 5000])
        elif move < 0.85:
            data[at : at + 8] = rng.choice([2**63 - 1, 10**10, 2**32, -1, 0]).to_bytes(
                8, "big", signed=True
            )
        else:
            start = rng.randrange(len(data))
            data[at:at] = data[start : start + rng.randrange(64)]
    return bytes(data)


def without_note(document):
    """The document as XGBoost would write it."""
    return {**document, "learner": {**document["learner"], "attributes": {}}}


@cache
def audited():
    """A model that labels and one that predicts numbers, rows, and reports of both."""
    rng = np.random.default_rng(0)
    X = rng.random((12, 4))
    labels = random_trees(rng, n_trees=3, depth=2, link="logistic", classes=["a", "b"])
    numbers = random_trees(rng, n_trees=3, depth=2, task="regression")
    threat = hw.Threat(eps=[0.5, hw.relative(0.1, 0.2), 0, (0, 1)], low=0, high=1)
    found = {}
    for name, trees in (("report", labels), ("regression report", numbers)):
        y = trees.predict(X)
        found[name] = (trees, X, y, hw.audit(trees, X, y, threat).to_json().encode())
    return found


def try_report(name, data):
    """Whether a report can be read, checked and drawn."""
    trees, X, y, _ = audited()[name]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        try:
            report = hw.Audit.from_json(file.name)
            report.check(trees, X, y, n_rows=3, random_state=0)
            report.to_html()
        except ValueError:
            return False
    return True


@cache
def formats():
    """Files of each format, and how to break them besides byte by byte."""
    ours, [catboost] = list(documents())[:-1], list(documents())[-1:]
    texts = [json.dumps(document, default=plain).encode() for document in ours]
    bare = [without_note(document) for document in ours[:2]]
    dump = [
        {"nodeid": 0, "split": "f1", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1,
         "children": [{"nodeid": 1, "leaf": 0.25}, {"nodeid": 2, "leaf": -0.5}]},
        {"nodeid": 0, "leaf": 0.125},
    ]  # fmt: skip
    return {
        "hardwood json": (texts, change_structure),
        "hardwood ubjson": ([ubjson.encode(document) for document in ours[:4]], None),
        "xgboost json": (
            [json.dumps(one, default=plain).encode() for one in bare],
            change_structure,
        ),
        "xgboost ubjson": ([ubjson.encode(one) for one in bare], None),
        "xgboost dump": ([json.dumps(dump).encode()], change_structure),
        "lightgbm": ([LIGHTGBM.encode(), LIGHTGBM_CATEGORIES.encode()], None),
        "catboost": ([json.dumps(catboost).encode()], change_structure),
        "onnx": (list(onnx_models()), change_onnx),
        **{name: ([found[-1]], change_structure) for name, found in audited().items()},
    }


def try_one(name, data):
    """Whether the input is one of its format; raises what must not come out of the door."""
    if name in audited():
        return try_report(name, data)
    unsaid = Unsaid(n_features=4) if xgboost_dump.can_load_bytes(data) else None
    try:
        trees = load_bytes(data, unsaid=unsaid)
    except (hw.ModelFileError, hw.UnsupportedModelError):
        return False
    if trees.n_features <= 1000:
        trees.margin(np.zeros((2, trees.n_features)))
        trees.leaf_categories(0)
    return True


def most_resident():
    """The largest number of bytes that the process ever had in memory."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux counts the parent's peak into a child's ru_maxrss, across exec, too
        return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes on macOS


class Tally:
    """What happened to the inputs of one format."""

    def __init__(self, name):
        self.name = name
        self.n = self.n_loaded = 0
        self.slowest = self.most_memory = 0.0

    def add(self, data):
        measured = self.n % MEASURED == 0
        self.n += 1
        if measured:
            tracemalloc.start()
        resident, start = most_resident(), time.process_time()
        self.n_loaded += try_one(self.name, data)
        seconds = time.process_time() - start
        # What Python allocates is measured at times, what the process grows by at each input.
        grown = most_resident() - resident
        if measured:
            grown = max(grown, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        self.most_memory = max(self.most_memory, max(grown - ROOM, 0) / max(len(data), 1))
        if self.most_memory > MEMORY:
            raise MemoryError(f"{grown} bytes for a file of {len(data)}")
        if not measured:
            self.slowest = max(self.slowest, seconds)
            if seconds > SLOW:
                raise TimeoutError(f"{seconds:.1f} s for a file of {len(data)} bytes")


class Desk:
    """The input that is being tried, where another process can read it."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 8 + LONGEST)

    def put(self, data):
        self.memory[8 : 8 + len(data)] = data
        self.memory[:8] = len(data).to_bytes(8, "little")

    def read(self):
        return self.memory[8 : 8 + int.from_bytes(self.memory[:8], "little")]


def inputs(name, seed):
    """Broken files of a format, the same ones for a seed."""
    rng = random.Random(f"{name} {seed}")
    seeds, change = formats()[name]
    while True:
        how = change if change is not None and rng.random() < 0.5 else change_bytes
        yield how(rng, rng.choice(seeds))[:LONGEST]


def try_inputs(names, options, desk, answers):
    """Try inputs of each format in turn, and send the tallies; what fails raises."""
    tallies = {name: Tally(name) for name in names}
    made = {name: inputs(name, options.seed) for name in names}
    for name in names:
        assert all(try_one(name, seed) for seed in formats()[name][0]), (
            f"a file of {name} does not load as it is"
        )
    end = time.monotonic() + options.seconds
    open_names = list(names)
    while open_names and time.monotonic() < end:
        for name in list(open_names):
            tally, until = tallies[name], time.monotonic() + SLICE
            while tally.n < options.inputs and time.monotonic() < until:
                data = next(made[name])
                desk.put(data)
                try:
                    tally.add(data)
                except BaseException:
                    print(f"{name}, seed {options.seed}, input {tally.n}:", flush=True)
                    raise
            if tally.n == options.inputs:
                open_names.remove(name)
        answers.send(tallies)


def watch(work, *arguments):
    """Run `work(*arguments, desk, answers)` in a process of its own, and give its last answer."""
    desk = Desk()
    receives, answers = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=work, args=(*arguments, desk, answers), daemon=True
    )
    process.start()
    answers.close()
    last, why = None, None
    try:
        while receives.poll(HANGS):
            last = receives.recv()
        why = f"no answer for {HANGS} s"
    except EOFError:
        process.join()
        why = process.exitcode and f"ended with code {process.exitcode}"
    finally:
        process.kill()
    if why:
        Path("fuzz-failure.bin").write_bytes(desk.read())
        raise RuntimeError(f"The process that tries inputs {why}: see fuzz-failure.bin.")
    return last


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="of all formats together")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=formats(), action="append", help="default: all")
    options = parser.parse_args()
    tallies = watch(try_inputs, options.format or list(formats()), options)
    for name, tally in tallies.items():
        print(
            f"{name:<18} {tally.n:>9} inputs, {tally.n_loaded:>7} loaded, "
            f"slowest {tally.slowest:.2f} s, memory at most {tally.most_memory:.0f} times the file"
        )


if __name__ == "__main__":
    main()
