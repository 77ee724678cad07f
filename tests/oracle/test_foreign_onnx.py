"""We read ONNX tree ensembles: our own, those of skl2onnx, and every comparison that they may use.

Runtimes add float32 in an order of their own, so margins are close; leaves are the same.
"""

import builtins

import numpy as np
import onnx
import onnxruntime as runtime
import pytest
from sklearn import ensemble, tree

import hardwood as hw
from hardwood.model.load import load_bytes
from samples import random_trees, rows_around, table

KINDS = {
    "binary": {"link": "logistic", "base": np.float32([-0.7])},
    "multi-class": {"n_outputs": 3, "n_trees": 9, "base": np.float32([0.3, 0, -2])},
    "shares": {"n_outputs": 3, "n_values": 3, "link": "share"},
    "one leaf": {"depth": 0, "n_trees": 2},
}


def scores_of(data, X, output=-1):
    # On several threads sums depend on how many rows are asked about at once.
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return session.run(None, {name: X})[output]


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_come_back(tmp_path, kind):
    trees = random_trees(np.random.default_rng(0), n_features=3, **KINDS[kind])
    (tmp_path / "m.onnx").write_bytes(trees.to_onnx())
    X = rows_around(trees, 2000, np.random.default_rng(1))
    for source in (tmp_path / "m.onnx", onnx.load(tmp_path / "m.onnx")):
        read = hw.load_model(source, X=X)
        np.testing.assert_array_equal(read.margin(X), trees.margin(X))
        np.testing.assert_array_equal(read.apply(X), trees.apply(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_are_those_of_onnxruntime_to_the_bit(n_classes):
    import skl2onnx

    X, y = table("imbalanced")
    X = X.astype(np.float32)
    y = y + (X[:, 1] > 0) if n_classes == 3 else y
    model = ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    proto = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    (node,) = (one for one in proto.graph.node if one.op_type == "TreeEnsembleClassifier")
    (given,) = (one for one in node.attribute if one.name == "post_transform")
    given.s = b"NONE"
    trees = hw.load_model(proto, X=X)
    rows = np.nan_to_num(rows_around(trees, 2000, np.random.default_rng(0))).astype(np.float32)
    theirs = scores_of(proto.SerializeToString(), rows)[:, -trees.n_outputs :]
    np.testing.assert_array_equal(trees.margin(rows).astype(np.float32), theirs)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeClassifier(max_depth=5, random_state=0),
        ensemble.RandomForestClassifier(10, max_depth=5, random_state=0),
        ensemble.ExtraTreesClassifier(10, max_depth=5, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_of_skl2onnx(tmp_path, model, n_classes):
    import skl2onnx

    X, y = table("imbalanced")
    X = X.astype(np.float32)
    y = y + (X[:, 1] > 0) if n_classes == 3 else y
    model.fit(X, np.array(["a", "b", "c"])[y])
    proto = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    trees = hw.load_model(tmp_path / "m.onnx", X=X)
    rows = np.nan_to_num(rows_around(trees, 2000, np.random.default_rng(0))).astype(np.float32)
    label = scores_of(proto.SerializeToString(), rows, 0)
    score = trees.margin(rows)
    top = np.sort(score, axis=1)
    # A tie is a matter of the last bit of a sum.
    decided = (
        np.abs(top[:, -1] - trees.cut) > 1e-5 if n_classes == 2 else top[:, -1] - top[:, -2] > 1e-5
    )
    assert decided.mean() > 0.9
    np.testing.assert_array_equal(trees.predict(rows)[decided], label[decided])


@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeRegressor(max_depth=5, random_state=0),
        ensemble.RandomForestRegressor(10, max_depth=5, random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regressors_of_skl2onnx(model):
    import skl2onnx

    X, _ = table("imbalanced")
    X = X.astype(np.float32)
    proto = skl2onnx.to_onnx(model.fit(X, X[:, 0] * X[:, 1]), X[:1])
    trees = hw.load_model(proto, X=X)
    rows = np.nan_to_num(rows_around(trees, 2000, np.random.default_rng(0))).astype(np.float32)
    theirs = scores_of(proto.SerializeToString(), rows)
    np.testing.assert_allclose(trees.margin(rows), theirs, rtol=1e-5, atol=1e-4)


def model_of(
    change=None, modes=("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"), kind=1, values=None
):
    """A chain of splits, one a mode, whose leaves are listed before most of them."""
    n = len(modes)
    ids = [*range(2 * n + 1)]
    order = [0, *range(n, 2 * n + 1), *range(1, n)]
    leaf = np.array([i >= n for i in range(2 * n + 1)])
    attributes = {
        "n_targets": 1,
        "nodes_treeids": [3] * len(ids),
        "nodes_nodeids": ids,
        "nodes_featureids": [i % 2 if i < n else 0 for i in range(2 * n + 1)],
        "nodes_modes": [*modes, *["LEAF"] * (n + 1)],
        "nodes_values": [*(values or [0.1 * (i + 1) for i in range(n)]), *[0.0] * (n + 1)],
        "nodes_truenodeids": [n + i if i < n else 0 for i in range(2 * n + 1)],
        "nodes_falsenodeids": [
            (1 + i if i < n - 1 else 2 * n) if i < n else 0 for i in range(2 * n + 1)
        ],
        "nodes_missing_value_tracks_true": [int(i % 3 == 0) for i in range(2 * n + 1)],
        "target_treeids": [3] * (n + 1),
        "target_nodeids": np.array(ids)[leaf].tolist(),
        "target_ids": [0] * (n + 1),
        "target_weights": np.arange(1.0, n + 2).tolist(),
    }
    for name in attributes:
        if name.startswith("nodes_"):
            attributes[name] = [attributes[name][i] for i in order]
    attributes.update(change or {})
    node = onnx.helper.make_node(
        attributes.pop("op_type", "TreeEnsembleRegressor"),
        [attributes.pop("input", "X")],
        ["Y"],
        domain="ai.onnx.ml",
        **{name: value for name, value in attributes.items() if value is not None},
    )
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node], "g", [value("X", kind, [None, 2])], [value("Y", 1, [None, 1])]
    )
    versions = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "all"])
def test_every_comparison(mode):
    proto = model_of() if mode == "all" else model_of(modes=[mode] * 4)
    trees = hw.load_model(proto)
    rows = rows_around(trees, 3000, np.random.default_rng(0))
    theirs = scores_of(proto.SerializeToString(), rows.astype(np.float32))
    np.testing.assert_array_equal(trees.margin(rows), theirs)
    assert len(np.unique(theirs)) >= 4  # some splits contradict each other


def test_columns_asked_for_equality_hold_categories():
    modes = ["BRANCH_LT", "BRANCH_EQ", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_GT", "BRANCH_EQ"]
    proto = model_of(modes=modes, values=[-2.0, 3.0, 2.0, 0.0, 1.0, 5.0])
    trees = hw.load_model(proto)
    assert trees.categorical_features.tolist() == [1]
    numbers = np.array([-3.0, -2, -1, 1, 1.5, 2, np.nan])
    rows = np.array([(x, c) for x in numbers for c in (-1.0, 0, 1, 3, 4, 5, 6, np.nan)])
    theirs = scores_of(proto.SerializeToString(), rows.astype(np.float32))
    np.testing.assert_array_equal(trees.margin(rows), theirs)
    pushed = hw.output_range(proto, rows[:8], hw.Threat({1: {3: [4, 5]}}))
    changed = [rows[3], [-3.0, 4.0], [-3.0, 5.0]]
    assert (
        pushed.highest[3]
        == scores_of(proto.SerializeToString(), np.array(changed, dtype=np.float32)).max()
    )


def test_the_reference_vouches_where_there_is_no_runtime(monkeypatch):
    importing = builtins.__import__

    def without(missing):
        def imports(name, *more):
            if name.split(".")[0] == missing:
                raise ImportError(name)
            return importing(name, *more)

        monkeypatch.setattr(builtins, "__import__", imports)

    without("onnxruntime")
    proto = model_of(modes=["BRANCH_LEQ"] * 3)
    assert hw.load_model(proto).n_leaves == 4
    data = proto.SerializeToString()
    without("onnx")
    with pytest.raises(ImportError, match=r"ONNX files need onnx\. Install it with: pip"):
        load_bytes(data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"op_type": "SVMRegressor"}, "reads ONNX models with one TreeEnsembleRegressor or .*SVM"),
        ({"input": "scaled"}, "does not read the model's own input but 'scaled'"),
        ({"post_transform": "PROBIT"}, 'post_transform="PROBIT"; load_model knows NONE'),
        ({"aggregate_function": "MAX"}, 'aggregate_function="MAX"; load_model knows SUM'),
        ({"nodes_modes": ["BRANCH_NEQ"] * 9}, "Tree 3, node 0 of this .* mode 'BRANCH_NEQ'; load"),
        (
            {"nodes_modes": ["BRANCH_EQ", *["LEAF"] * 5, *["BRANCH_LT"] * 3]},
            r"by BRANCH_EQ whether column 0 is 0\.1, but compares it as a number, too; load_model",
        ),
        (
            {"nodes_modes": ["BRANCH_LT", *["LEAF"] * 5, "BRANCH_EQ", "BRANCH_LT", "BRANCH_EQ"]},
            r"by BRANCH_EQ whether column 1 is 0\.2, but that is no category; load_model takes",
        ),
        ({"base_values": [1.0, 2.0]}, "has 2 base values for 1 scores"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(change, words):
    with pytest.raises(hw.UnsupportedModelError, match=words):
        load_bytes(model_of(change).SerializeToString())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes_treeids": [3]}, "differ in length"),
        ({"nodes_nodeids": [7] * 9}, "has node 7 of tree 3 twice"),
        ({"nodes_truenodeids": [-5] * 9}, "has no node -5 in tree 3"),
        ({"nodes_truenodeids": [8] * 9}, "is reached twice"),
        ({"nodes_featureids": [-1] * 9}, "must not be negative"),
        ({"nodes_featureids": [9] * 9}, "splits on feature 9, but the model has 2 features"),
        ({"nodes_values": [float("nan")] * 9}, "has threshold NaN"),
        ({"nodes_values": None}, "nodes_values in the ONNX file has 0 entries, not 9"),
        ({"n_targets": 10**9}, "must be 1 to 100000"),
        ({"target_ids": [5] * 5}, "weights for outputs beyond 0 to 0"),
        ({"target_nodeids": [1] * 5}, "names nodes that are no leaves"),
        ({"target_weights": [1.0]}, "target_weights in the ONNX file has 1 entries, not 5"),
        ({"n_targets": 99999, "target_ids": [0, 1, 2, 3, 4]}, "99999 outputs but only 5 weights"),
        ({"op_type": "TreeEnsembleClassifier"}, "has 0 labels, not 2 to"),
    ],
)
def test_hostile_models_are_refused_by_name(change, words):
    with pytest.raises(hw.ModelFileError, match=words):
        load_bytes(model_of(change).SerializeToString())
    with pytest.raises(hw.ModelFileError, match="is not ONNX, or it is cut"):
        load_bytes(model_of().SerializeToString()[:-3])
