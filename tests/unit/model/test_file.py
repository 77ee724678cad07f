"""What is written is what is read, and a file is hostile until proven otherwise."""

import base64
import copy
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from hardwood.model import ubjson
from hardwood.model.xgboost.write import document_of, to_json
from samples import assert_same_trees, random_trees

KINDS = {
    "binary": {"link": "logistic"},
    "binary with a base": {"link": "logistic", "base": [0.1], "classes": ["no", "yes"]},
    "regression": {"base": np.float32([-3.3])},
    "multi-class": {
        "n_outputs": 3,
        "link": "softmax",
        "base": [0.5, 0.1, -2.0],
        "classes": [3, 5, 9],
    },
    "shares": {"n_outputs": 3, "n_values": 3, "link": "share"},
    "binary shares": {"n_outputs": 2, "n_values": 2, "link": "share", "classes": [False, True]},
    "doubles": {"dtype": "f8", "n_outputs": 2, "n_values": 2, "link": "share"},
    "single leaves": {"depth": 0},
}


def a_model(kind="binary with a base", seed=0, **more):
    return random_trees(np.random.default_rng(seed), **{**KINDS[kind], **more})


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("kind", KINDS)
def test_load_gives_back_what_was_saved(tmp_path, kind, suffix):
    rng = np.random.default_rng(1)
    plain = a_model(kind)
    arrays = {k: v for k, v in plain.__getstate__().items() if k not in ("gain", "cover")}
    trees = hw.Trees(
        **{
            **arrays,
            "gain": rng.random(plain.n_nodes),
            "cover": rng.random(plain.n_nodes) + 1,
            "feature_names": ["größe", 'a "quoted" <name>', "c\\d", "\x01"],
            "metadata": {
                "estimator": "X",
                "parameters": {"learning_rate": 0.1, "max_depth": None, "names": ["a"]},
                "threat": hw.Threat(
                    [(0.1, 0.1), (0.0, 0.2), (0.0, 0.0), (1.0, 1.0)], low=[0.0] * 4, fixed=(2,)
                ),
            },
        }
    )
    for model in (plain, trees):
        model.save_model(tmp_path / f"m{suffix}")
        assert_same_trees(hw.load_model(tmp_path / f"m{suffix}"), model)
        first = (tmp_path / f"m{suffix}").read_bytes()
        hw.load_model(tmp_path / f"m{suffix}").save_model(tmp_path / f"again{suffix}")
        assert (tmp_path / f"again{suffix}").read_bytes() == first


def test_an_estimator_saves_its_threat_and_parameters(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), np.repeat(["spam", "ham"], 40)
    tree = hw.RobustDecisionTreeClassifier(eps=0.25, max_depth=3).fit(X, y)
    tree.save_model(tmp_path / "m.json")
    back = hw.load_model(str(tmp_path / "m.json"))
    assert back.metadata["threat"] == hw.Threat(0.25)
    assert back.metadata["parameters"]["max_depth"] == 3
    assert back.metadata["estimator"] == "RobustDecisionTreeClassifier"
    np.testing.assert_array_equal(back.predict(X), tree.predict(X))


def test_save_model_refuses_other_names(tmp_path):
    with pytest.raises(ValueError, match=r'must end in "\.json" or "\.ubj", got path=.*m\.txt'):
        a_model().save_model(tmp_path / "m.txt")
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        hw.load_model(tmp_path / "absent.json")
    with pytest.raises(hw.ModelFileError, match="is not a file"):
        hw.load_model(tmp_path)


def test_a_note_about_other_trees_is_not_read(tmp_path):
    trees = a_model()
    document = document_of(trees)
    document["learner"]["gradient_booster"]["model"]["trees"][1]["split_conditions"][0] = 7.0
    (tmp_path / "m.json").write_bytes(to_json(document))
    other = hw.load_model(tmp_path / "m.json")
    assert other.classes is None
    assert other.n_trees == trees.n_trees + 1  # the base is a tree like any other now
    assert 7.0 in other.threshold


def hostile(change, suffix=".json"):
    """The bytes of a model whose document `change` has touched."""
    document = copy.deepcopy(document_of(a_model()))
    learner = document["learner"]
    model = learner["gradient_booster"]["model"]
    change(document, learner, model, model["trees"][1])
    return (json_bytes if suffix == ".json" else ubjson.encode)(document)


def edit(path, value):
    def change(document, learner, model, tree):
        at = {"document": document, "learner": learner, "model": model, "tree": tree}[path[0]]
        for step in path[1:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def edit_note(name, value):
    def change(document, learner, model, tree):
        note = json.loads(learner["attributes"]["hardwood"])
        note[name] = value
        learner["attributes"]["hardwood"] = json.dumps(note)

    return change


CHANGES = {
    "cycle": (edit(("tree", "left_children", 1), 0), "reached twice"),
    "negative child": (edit(("tree", "left_children", 0), -5), "has child -5"),
    "child too large": (edit(("tree", "right_children", 0), 10**6), "has child 1000000"),
    "deleted and cyclic": (
        lambda d, le, m, t: (
            t["tree_param"].update(num_deleted="1"),
            t["left_children"].__setitem__(1, 0),
        ),
        "do not form a tree",
    ),
    "NaN threshold": (edit(("tree", "split_conditions", 0), np.nan), "threshold NaN|must be"),
    "feature too large": (edit(("tree", "split_indices", 0), 10**6), "splits on feature 1000000"),
    "negative feature": (edit(("tree", "split_indices", 0), -1), "splits on feature -1"),
    "lengths differ": (edit(("tree", "default_left"), np.zeros(1, "u1")), "1 entries, not"),
    "text for numbers": (edit(("tree", "left_children"), ["a"]), "must be a list of int32"),
    "nested numbers": (edit(("tree", "left_children"), [[1]]), "must be a list of int32"),
    "object for numbers": (edit(("tree", "split_conditions"), {}), "must be a list of float32"),
    "huge integers": (edit(("tree", "left_children"), [10**30]), "must be a list of int32"),
    "fractions": (edit(("tree", "left_children"), np.float32([1.5])), "must be a list of int32"),
    "tree is no object": (edit(("model", "trees", 0), 7), "tree 0 .* must be dict, got int"),
    "output": (edit(("model", "tree_info", 1), 5), "from output 5 on"),
    "outputs": (edit(("model", "tree_info"), [0]), "1 entries, not"),
    "classes": (
        edit(("learner", "learner_model_param", "num_class"), "9" * 9),
        "num_class must be",
    ),
    "features": (edit(("learner", "learner_model_param", "num_feature"), "9" * 99), "a count, got"),
    "no count": (edit(("learner", "learner_model_param", "num_feature"), 4), "a count, got 4"),
    "base": (edit(("learner", "learner_model_param", "base_score"), "x"), "base_score must be"),
    "bases": (edit(("learner", "learner_model_param", "base_score"), "[1,2]"), "2 entries but"),
    "booster": (edit(("learner", "gradient_booster", "name"), "gblinear"), "not made of trees"),
    "objective": (edit(("learner", "objective", "name"), "my:own"), "does not know"),
    "learner": (edit(("document", "learner"), 3), "must be dict, got int"),
    "no learner": (lambda d, le, m, t: d.pop("learner"), "cannot read"),
    "note cut": (edit(("learner", "attributes", "hardwood"), '{"a'), "is not JSON"),
    "note type": (edit(("learner", "attributes", "hardwood"), "[]"), "must be dict, got list"),
    "newer": (edit_note("format", 4), "has format 4, this hardwood reads up to 3"),
    "note link": (edit_note("link", "odd"), "link must be one of"),
    "note base": (edit_note("base", [5.0]), "is not the base"),
    "note base type": (edit_note("base", ["5"]), "must hold numbers"),
    "note base trees": (edit_note("n_base_trees", 3), "speaks of 3 trees"),
    "note values": (edit_note("n_values", 2), "n_values must be 1"),
    "note dtype": (edit_note("x_dtype", "float16"), "are float32 or float64"),
    "note threshold": (edit_note("threshold", "AAAA"), "has 3 bytes"),
    "note base64": (edit_note("value", "?"), "is not base64"),
    "note classes": (edit_note("classes", {"dtype": "object", "values": [[]]}), "cannot be read"),
    "note many classes": (
        edit_note("classes", {"dtype": "int64", "values": [1, 2, 3]}),
        r"classes has shape \(3,\) but the model tells 2",
    ),
    "note big class": (edit_note("classes", {"dtype": "int8", "values": [1, 999]}), "do not fit"),
    "note names": (edit_note("feature_names", [1, 2, 3, 4]), "must be str, got int"),
    "note threat": (edit_note("metadata", {"threat": {"eps": "x"}}), "cannot be read"),
}


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, ".json") for name in CHANGES]
    + [(name, ".ubj") for name in CHANGES if name != "huge integers"],  # UBJSON has none
)
def test_hostile_documents_are_refused_by_name(tmp_path, name, suffix):
    change, words = CHANGES[name]
    (tmp_path / "m").write_bytes(hostile(change, suffix))
    with pytest.raises((hw.ModelFileError, hw.UnsupportedModelError), match=words):
        hw.load_model(tmp_path / "m")


def test_a_note_cannot_say_other_numbers_than_the_trees(tmp_path):
    trees = a_model("doubles")
    for name in ("threshold", "value"):
        document = document_of(trees)
        note = json.loads(document["learner"]["attributes"]["hardwood"])
        array = np.frombuffer(base64.b64decode(note[name]), "<f8") + 1.0
        note[name] = base64.b64encode(array.tobytes()).decode()
        document["learner"]["attributes"]["hardwood"] = json.dumps(note)
        (tmp_path / "m.json").write_bytes(to_json(document))
        with pytest.raises(hw.ModelFileError, match=f"{name} in the file's note is not that of"):
            hw.load_model(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "begins with b''"),
        (b"\x80\x04pickle", "This is a pickled object, not a model file; open it with joblib"),
        (b"CBM1\x00", r"CatBoost's binary format; pass the model itself, or save it with save_mo"),
        (b"{", "is not JSON, or it is cut"),
        (b'{"a":' * 100_000, "nested too deeply|is not JSON"),
        (b'{"a":' + b"[" * 100_000, "nested too deeply|is not JSON"),
        (b'{"a":' + b"9" * 100_000 + b"}", "is not JSON"),
        (b'{"a":"\xff"}', "is not JSON"),
        (b"{i\x01a" * 200, "nested deeper than 64"),
        (b"{i\x01a[$d#L" + struct.pack(">q", 10**10), "40000000000 bytes are announced"),
        (b"{i\x01a[#L" + struct.pack(">q", 10**18), "bytes are announced"),
        (b"{i\x01a[#L" + struct.pack(">q", -1), "the length -1 is negative"),
        (b"{i\x01a[$Z#L" + struct.pack(">q", 10**18), "has the type b'Z'"),
        (b"{i\x01aSL" + struct.pack(">q", 2**62), "bytes are announced"),
        (b"{i\x01aSi\x01\xff}", "is not UTF-8"),
        (b"{i\x01a?}", r"no type b'\?'"),
        (b"{d\x01", "a length has the type b'd'"),
        (b"{i\x01a[$d$", "has no length"),
        (b"{i\x01aZ}more", "4 bytes follow the end"),
    ],
)
def test_hostile_bytes_are_refused_by_name(tmp_path, data, words):
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(hw.ModelFileError, match=words):
        hw.load_model(tmp_path / "m")


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_a_cut_file_is_refused(tmp_path, suffix):
    a_model(n_trees=2, depth=2).save_model(tmp_path / f"m{suffix}")
    data = (tmp_path / f"m{suffix}").read_bytes()
    for end in range(0, len(data), 37):
        (tmp_path / "cut").write_bytes(data[:end])
        with pytest.raises(hw.ModelFileError, match=r"JSON|begins with"):
            hw.load_model(tmp_path / "cut")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), st.integers(-(2**63), 2**63 - 1) | st.text()))
def test_ubjson_gives_back_what_it_wrote(value):
    assert ubjson.decode(ubjson.encode(value)) == value


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_structure_loads_or_is_refused(data):
    document = document_of(a_model(n_trees=2, depth=2))
    at, steps = document, []
    while True:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        if not keys:
            break
        steps.append((at, data.draw(st.sampled_from(list(keys)))))
        following = at[steps[-1][1]]
        if not isinstance(following, dict | list | np.ndarray) or data.draw(st.booleans()):
            break
        at = following
    holder, key = steps[-1]
    if isinstance(holder, np.ndarray):
        holder[key] = data.draw(st.sampled_from([0, 1, 2, 3, 255 if holder.dtype == "u1" else -1]))
    else:
        holder[key] = data.draw(VALUES)
    read_or_refuse(json_bytes(document))


def json_bytes(document):
    def plain(value):
        return value.tolist() if isinstance(value, np.ndarray) else value

    return json.dumps(document, default=plain).encode()


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(["json", "ubj"]))
def test_any_change_of_bytes_loads_or_is_refused(data, form):
    document = document_of(a_model(n_trees=2, depth=2))
    original = to_json(document) if form == "json" else ubjson.encode(document)
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=8))
    read_or_refuse(bytes(changed))


def read_or_refuse(data):
    """A file is a model that predicts, or one of two errors."""
    from hardwood.model.load import load_bytes

    try:
        trees = load_bytes(data)
    except (hw.ModelFileError, hw.UnsupportedModelError):
        return
    if trees.n_features < 100:
        trees.margin(np.zeros((1, trees.n_features)))
