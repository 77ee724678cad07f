"""`hardwood convert` between the files of all tools."""

import numpy as np

import hardwood as hw
from command import run
from samples import random_trees


def test_there_and_back_again(tmp_path):
    trees = random_trees(np.random.default_rng(0), link="logistic", base=np.float32([0.5]))
    trees.save_model(tmp_path / "m.json")
    X = np.random.default_rng(1).normal(size=(500, trees.n_features))
    for source, target in [("m.json", "m.ubj"), ("m.ubj", "m.txt"), ("m.txt", "again.json")]:
        done = run("convert", tmp_path / source, tmp_path / target)
        assert done.returncode == 0, done.stderr
        margin = hw.load_model(tmp_path / target).margin(X)
        # LightGBM's text adds in double.
        np.testing.assert_allclose(margin, trees.margin(X), rtol=0, atol=1e-5)
    assert run("convert", tmp_path / "m.json", tmp_path / "m.onnx").returncode == 0
    assert (tmp_path / "m.onnx").read_bytes() == trees.to_onnx()
    assert run("convert", tmp_path / "m.onnx", tmp_path / "back.ubj").returncode == 0
    margin = hw.load_model(tmp_path / "back.ubj").margin(X)
    np.testing.assert_array_equal(margin, trees.margin(X))


def test_unknown_names_are_refused(tmp_path):
    done = run("convert", "m.json", "m.pkl", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("hardwood: ")
    assert "must end in .json, .ubj, .txt or .onnx, got" in done.stderr
    done = run("convert", "m.json", "m.ubj", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("hardwood: There is no model file")
