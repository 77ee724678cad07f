"""Throw broken model files at the door, for a while.

Every input must load as a model that predicts, or end in ModelFileError or UnsupportedModelError;
quickly, and in little memory. Run by ``make fuzz``; a failing input is written beside the seed.
"""

import argparse
import json
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np

import hardwood as hw
from hardwood.model import file, ubjson
from hardwood.model.load import load_bytes

sys.path.insert(0, str(Path(__file__).parents[1]))
from samples import random_trees

MEMORY = 1 << 30
SLOW = 5.0
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
        yield file.document(random_trees(rng, n_trees=4, depth=2, **kind))
    categories = file.document(with_categories(random_trees(rng, n_trees=3, depth=2)))
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
    note = document.get("learner", {}).get("attributes", {}).get("hardwood")
    inner = json.loads(note) if note is not None and rng.random() < 0.4 else None
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        target = document if inner is None else inner
        places = spots(target)
        if not places:
            break
        holder, key = rng.choice(places)
        move = rng.random()
        if move < 0.6:
            holder[key] = rng.choice(NASTY)
        elif move < 0.8:
            other, other_key = rng.choice(spots(target))
            holder[key] = other[other_key]
        elif isinstance(holder, list):
            holder[key:key] = holder[key : key + 1] * rng.choice([0, 1, 1000])
        else:
            del holder[key]
        # Copies may hold each other by now.
        try:
            target = json.loads(json.dumps(target))
        except (ValueError, RecursionError):
            return b'{"learner": {}}'
        document, inner = (target, None) if inner is None else (document, target)
    if inner is not None:
        document["learner"]["attributes"]["hardwood"] = json.dumps(inner)
    return json.dumps(document).encode()


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


def try_one(data):
    try:
        trees = load_bytes(data)
    except (hw.ModelFileError, hw.UnsupportedModelError):
        return False
    if trees.n_features <= 1000:
        trees.margin(np.zeros((2, trees.n_features)))
        trees.leaf_categories(0)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    texts = [json.dumps(document, default=plain) for document in documents()]
    seeds = [text.encode() for text in texts] + [LIGHTGBM.encode(), LIGHTGBM_CATEGORIES.encode()]
    seeds += [ubjson.encode(document) for document in list(documents())[:4]]
    protos = list(onnx_models())
    seeds += protos
    assert all(try_one(seed) for seed in seeds)
    end, n, n_loaded, slowest = time.monotonic() + options.seconds, 0, 0, 0.0
    while n < options.inputs and time.monotonic() < end:
        n += 1
        structure = rng.random() < 0.5
        if structure and rng.random() < 0.2:
            data = change_onnx(rng, rng.choice(protos))
        elif structure:
            data = change_structure(rng, rng.choice(texts))
        else:
            data = change_bytes(rng, rng.choice(seeds))
        start = time.process_time()
        try:
            n_loaded += try_one(data)
        except BaseException:
            Path("fuzz-failure.bin").write_bytes(data)
            raise
        slowest = max(slowest, time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{n} inputs, {n_loaded} loaded; slowest {slowest:.2f} s, peak {peak / 1e6:.0f} MB")
    return 0 if slowest < SLOW and peak < MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
