"""`hardwood convert` between the files of all tools."""

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import hardwood as hw
from hardwood.cli.convert import convert
from samples import random_trees


def run(*arguments):
    app = typer.Typer()
    app.command()(convert)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_there_and_back_again(tmp_path):
    trees = random_trees(np.random.default_rng(0), link="logistic", base=np.float32([0.5]))
    trees.save_model(tmp_path / "m.json")
    X = np.random.default_rng(1).normal(size=(500, trees.n_features))
    for source, target in [("m.json", "m.ubj"), ("m.ubj", "m.txt"), ("m.txt", "again.json")]:
        done = run(tmp_path / source, tmp_path / target)
        assert done.exit_code == 0, done.output
        margin = hw.load_model(tmp_path / target).margin(X)
        # LightGBM's text adds in double.
        np.testing.assert_allclose(margin, trees.margin(X), rtol=0, atol=1e-5)
    pytest.importorskip("onnx")
    assert run(tmp_path / "m.json", tmp_path / "m.onnx").exit_code == 0
    assert (tmp_path / "m.onnx").read_bytes() == trees.to_onnx()
    assert run(tmp_path / "m.onnx", tmp_path / "back.ubj").exit_code == 0
    margin = hw.load_model(tmp_path / "back.ubj").margin(X)
    np.testing.assert_array_equal(margin, trees.margin(X))


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .json, .ubj, .txt or .onnx, got .*m\.pkl"):
        raise run(tmp_path / "m.json", tmp_path / "m.pkl").exception
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        raise run(tmp_path / "m.json", tmp_path / "m.ubj").exception
