"""Every command, as its own help shows it, and what it says of mistakes."""

import contextlib
import io
import json
import re
import shlex
import shutil
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw
from hardwood.cli import main as cli

# The examples of the help take one eps for all columns, which these columns are too different for.
pytestmark = pytest.mark.filterwarnings("ignore::hardwood.UnitWarning")

THREAT = """
norm = "inf"
low = 0

[eps]
income = 3000
debt = [0, 500]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory with the files that the examples name."""
    place = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    n = 400
    table = pd.DataFrame(
        {
            "income": rng.normal(50_000, 9_000, n).round(),
            "debt": rng.gamma(2, 4_000, n).round(),
            "age": rng.integers(18, 80, n),
        }
    )
    table["y"] = (table.income - 2 * table.debt + rng.normal(0, 8_000, n) > 30_000).astype(int)
    table[:200].to_csv(place / "train.csv", index=False)
    table[200:].to_csv(place / "rows.csv", index=False)
    X, y = table[:200].drop(columns="y"), table[:200].y
    xgb.XGBClassifier(n_estimators=15, max_depth=3).fit(X, y).save_model(place / "model.json")
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)).fit(X, y)
    joblib.dump(pipeline, place / "pipeline.joblib")
    (place / "threat.toml").write_text(THREAT)
    return place


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    """Run the command in this process: code, output, errors."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    before, sys.argv = sys.argv, ["hardwood", *map(str, words)]
    told = warnings.formatwarning
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv, warnings.formatwarning = before, told
    return code, out.getvalue(), err.getvalue()


def example_lines():
    for name in cli.COMMANDS:
        module = __import__(f"hardwood.cli.{name}", fromlist=[name])
        for line in re.findall(r"^ +(hardwood .*)$", getattr(module, name).__doc__, re.M):
            yield pytest.param(line, id=line)


def test_every_command_has_an_example():
    told = {param.values[0].split()[1] for param in example_lines()}
    assert told == set(cli.COMMANDS)


@pytest.mark.parametrize("line", list(example_lines()))
def test_the_examples_of_the_help_run(line, here):
    if line.split()[1] == "check":
        run(*shlex.split("audit model.json rows.csv --label y --eps 0.1 --out report.json"))
    if "--twin" in line:
        run(*shlex.split("harden model.json train.csv --label y --eps 0.1"))
    code, out, err = run(*shlex.split(line)[1:])
    assert code == 0, err
    assert out
    for path in re.findall(r"--out (\S+)", line):
        assert (here / path).stat().st_size > 0


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help(name, here):
    code, out, err = run(name, "--help")
    assert code == 0, err
    assert "Examples:" in out


def test_an_audit_from_the_command_line_is_that_of_python(here):
    words = "audit model.json rows.csv --label y --threat threat.toml --json"
    code, out, _ = run(*words.split())
    assert code == 0
    told = json.loads(out)
    rows = pd.read_csv("rows.csv")
    booster = xgb.Booster(model_file="model.json")
    threat = hw.Threat({"income": 3000, "debt": (0, 500)}, low=0)
    own = hw.audit(booster, rows.drop(columns="y"), rows.y.to_numpy(), threat).content
    for name in ("certificate", "classes", "curve", "fragile", "threat", "accuracy", "alone"):
        assert told[name] == own[name]
    assert told["model"]["name"] == "model.json"
    assert told["checks"][0]["passed"] is True  # the library itself was asked


def test_a_share_of_the_spread_is_that_of_the_rows(here):
    code, out, _ = run(*"audit model.json rows.csv --label y --share 0.2 --json".split())
    assert code == 0
    rows = pd.read_csv("rows.csv").drop(columns="y")
    assert json.loads(out)["threat"]["code"] == repr(hw.Threat.from_frame(rows, share=0.2))


def test_a_model_file_without_names_is_asked_in_those_of_the_table(here):
    table = pd.read_csv("train.csv")
    X, y = table.drop(columns="y"), table.y
    xgb.XGBClassifier(n_estimators=15, max_depth=3).fit(X.to_numpy(), y).save_model("nameless.json")
    how = ["rows.csv", "--label", "y", "--threat", "threat.toml", "--json"]
    named, nameless = (run("certify", model, *how) for model in ("model.json", "nameless.json"))
    assert nameless == named
    assert run("audit", "nameless.json", *how[:3], "--share", "0.1", "--out", "r.html")[0] == 0


def test_labels_that_the_table_calls_otherwise(here):
    for name in ("rows", "train"):
        table = pd.read_csv(f"{name}.csv")
        table.assign(y=np.where(table.y > 0, "good", "bad")).to_csv(f"w_{name}.csv", index=False)
    ours, told = "--eps 3000 --label y", "--classes bad,good"
    for line in ("certify model.json {}rows.csv", "attack model.json {}rows.csv"):
        numbers = run(*f"{line.format('')} {ours} --json".split())
        named = run(*f"{line.format('w_')} {ours} {told} --json".split())
        assert numbers[0] == 0
        assert named[:2] == numbers[:2]
    assert run(*f"harden model.json w_train.csv {ours} {told} --out twin.json".split())[0] == 0
    both = f"audit model.json w_rows.csv {ours} {told} --twin twin.json --out both.json"
    assert run(*both.split())[0] == 0
    check = (
        f"check both.json --model model.json --data w_rows.csv --label y {told} --twin twin.json"
    )
    assert run(*f"{check} {told}".split())[0] == 0


@pytest.mark.parametrize("command", ["attack", "distance"])
def test_a_share_is_the_threat_of_other_commands_too(command, here):
    rows = pd.read_csv("rows.csv").drop(columns="y")
    (here / "same.toml").write_text(hw.Threat.from_frame(rows, share=0.2).to_toml())
    line = f"{command} model.json rows.csv --label y --json"
    shared, written = (run(*f"{line} {t}".split()) for t in ("--share 0.2", "--threat same.toml"))
    assert shared[0] == 0
    assert shared[:2] == written[:2]


def test_too_little_proven_ends_with_code_1(here):
    words = "model.json rows.csv --label y --eps 5000 --fail-under 0.9".split()
    for command in ("audit", "certify"):
        code, _, err = run(command, *words)
        assert code == 1
        assert "is below --fail-under 0.9" in err
        assert run(command, *words[:-1], "0")[0] == 0


def test_a_tampered_report_ends_with_code_1(here):
    run(*"audit model.json rows.csv --label y --eps 0.1 --out report.json".split())
    check = "check report.json --model model.json --data rows.csv --label y".split()
    code, out, _ = run(*check)
    assert (code, out.count("holds"), out.count("FAILS")) == (0, 9, 0)
    text = (here / "report.json").read_text()
    (here / "report.json").write_text(
        re.sub(r'"certified": (\d+)', '"certified": 199', text, count=1)
    )
    code, out, _ = run(*check)
    assert code == 1
    assert "FAILS  The file was edited, or its seal is missing." in out
    assert "FAILS  These do not follow from the model and the answers of the rows:" in out
    code, out, _ = run(*[word.replace("rows", "train") for word in check])
    assert code == 1
    assert "Not the data that the report was made of" in out


def test_a_model_that_predicts_numbers_is_audited_and_checked(here):
    table = pd.read_csv("train.csv")
    model = xgb.XGBRegressor(n_estimators=10, max_depth=3)
    model.fit(table[["debt", "age", "y"]], table.income).save_model("income.json")
    table[["debt", "age", "y", "income"]].to_csv("incomes.csv", index=False)
    rows = "incomes.csv --label income --eps 50".split()
    code, out, err = run("audit", "income.json", *rows, "--out", "a.json", "--out", "a.html")
    assert code == 0, err
    assert "mean absolute error under attack" in out
    code, out, _ = run(
        *"check a.json --model income.json --data incomes.csv --label income".split()
    )
    assert (code, out.count("holds"), out.count("FAILS")) == (0, 8, 0)
    code, _, err = run("audit", "income.json", *rows, "--fail-under", "0.5")
    assert code == 2
    assert "--fail-under is for classifiers, and this model predicts numbers." in err


def save_a_model_of(label):
    table = pd.read_csv("train.csv")
    kind = xgb.XGBClassifier if label == "y" else xgb.XGBRegressor
    model = kind(n_estimators=10, max_depth=3)
    model.fit(table.drop(columns=label), table[label]).save_model("mine.json")


@pytest.mark.parametrize("label", ["y", "debt"])
def test_a_twin_is_trained_on_half_of_the_rows_and_the_report_is_checked(label, here):
    save_a_model_of(label)
    rows = f"rows.csv --label {label} --eps 500".split()
    code, out, err = run("audit", "mine.json", *rows, "--harden", "--out", "both.json")
    assert code == 0, err
    assert "the hardened twin" in out
    assert json.loads((here / "both.json").read_text())["data"]["n_rows"] == 100
    check = f"check both.json --model mine.json --data rows.csv --label {label}".split()
    code, out, _ = run(*check)
    assert (code, out.count("FAILS")) == (0, 0), out
    assert "its model was not given" in out


@pytest.mark.parametrize("label", ["y", "debt"])
def test_a_twin_comes_from_a_file(label, here):
    save_a_model_of(label)
    threat = f"--label {label} --eps 500".split()
    run("harden", "mine.json", "train.csv", *threat, "--out", "hard.json")
    audit = ["audit", "mine.json", "rows.csv", *threat, "--twin", "hard.json"]
    code, _, err = run(*audit, "--out", "both.json")
    assert code == 0, err
    check = f"check both.json --model mine.json --data rows.csv --label {label} --twin hard.json"
    code, out, _ = run(*check.split())
    assert (code, out.count("FAILS")) == (0, 0), out
    assert "holds  Twin: " in out
    code, _, err = run(*audit, "--harden")
    assert code == 2
    assert "Either --harden trains the twin or --twin names its file, not both." in err


def test_rows_come_in_many_kinds_of_files(here):
    rows = pd.read_csv("rows.csv")
    rows.to_csv("rows.csv.gz", index=False)
    rows.to_csv("rows.tsv", index=False, sep="\t")
    rows.to_parquet("rows.parquet")
    rows.to_feather("rows.feather")
    X, y = rows.drop(columns="y").to_numpy(), rows.y.to_numpy()
    np.savez("rows.npz", X=X, y=y)
    dump_svmlight_file(X, y, "rows.svm", zero_based=True)
    _, truth, _ = run(*"certify model.json rows.csv --label y --eps 1000".split())
    for name in ("rows.csv.gz", "rows.tsv", "rows.parquet", "rows.feather"):
        assert run("certify", "model.json", name, *"--label y --eps 1000".split())[1] == truth
    for name in ("rows.npz", "rows.svm"):
        assert run(*f"certify model.json {name} --eps 1000".split())[1] == truth


@pytest.mark.parametrize("empty_first", [True, False])
def test_libsvm_files_are_read_as_the_model_read_them(here, empty_first):
    # XGBoost counts columns as they are written, and what is not stored is missing to it.
    rng = np.random.default_rng(0)
    X = rng.random((300, 5)) * (rng.random((300, 5)) < 0.7)
    y = (X[:, 1] > X[:, 2]).astype(int)
    dump_svmlight_file(X, y, "rows.svm", zero_based=False)
    seen, _ = load_svmlight_file("rows.svm", zero_based=empty_first)
    model = xgb.XGBClassifier(n_estimators=5, max_depth=3).fit(seen, y)
    model.save_model("sparse.json")
    assert model.n_features_in_ == 5 + empty_first
    assert (model.predict(seen) != model.predict(seen.toarray())).any()
    code, _, err = run(*"predict sparse.json rows.svm --out said.csv".split())
    assert code == 0, err
    np.testing.assert_array_equal(pd.read_csv("said.csv").prediction, model.predict(seen))


def test_what_is_trained_is_predicted(here):
    rows = pd.read_csv("train.csv")
    rows["y"] = np.where(rows.y == 1, "APPROVE", "DECLINE")
    rows.to_csv("train.csv", index=False)
    code, out, err = run(*"train train.csv --label y --eps 0 --kind tree --out t.json".split())
    assert code == 0, err
    assert "RobustDecisionTreeClassifier" in out
    code, _, err = run(*"predict t.json train.csv --label y --out said.csv".split())
    said = pd.read_csv("said.csv").prediction
    assert set(said) == {"APPROVE", "DECLINE"}
    right = np.count_nonzero(said == rows.y)
    assert f"right: {right / 200:.3f} ({right} of 200)" in err


def test_a_table_that_calls_classes_otherwise_is_told_in_its_words(here):
    rows = pd.read_csv("rows.csv")
    rows.assign(y=np.where(rows.y > 0, "good", "bad")).to_csv("named.csv", index=False)
    told = "--label y --classes bad,good"
    line = f"audit model.json named.csv {told} --eps 3000 --out named.json"
    code, out, err = run(*line.split())
    assert code == 0, err
    assert "turns good into bad" in out or "turns bad into good" in out
    assert json.loads((here / "named.json").read_text())["model"]["classes"] == ["bad", "good"]
    assert run(*f"check named.json --model model.json --data named.csv {told}".split())[0] == 0
    code, _, err = run(*f"predict model.json named.csv {told} --out said.csv".split())
    assert code == 0, err
    said = pd.read_csv("said.csv").prediction
    assert set(said) == {"bad", "good"}
    right = int((said == pd.read_csv("named.csv").y).sum())
    assert f"({right} of {len(rows)})" in err


def test_a_binary_file_of_catboost_is_opened_by_catboost(here):
    catboost = pytest.importorskip("catboost")
    rows = pd.read_csv("rows.csv")
    model = catboost.CatBoostClassifier(iterations=5, depth=2, allow_writing_files=False, verbose=0)
    model.fit(rows.drop(columns="y"), rows.y).save_model("model.cbm")
    code, out, err = run(*"certify model.cbm rows.csv --label y --eps 1 --json".split())
    assert code == 0, err
    proof = hw.certify(model, rows.drop(columns="y"), rows.y, 1)
    assert json.loads(out)["certified"] == int((proof.status == "certified").sum())


def test_columns_that_a_sparse_file_does_not_name_are_told(here):
    trained = pd.read_csv("train.csv").drop(columns="y").columns
    (here / "few.svm").write_text("1 1:50000\n0 1:3000\n")
    with pytest.warns(UserWarning, match=f"names 1 of the model's {len(trained)} columns; the la"):
        code, _, err = run(*"predict model.json few.svm".split())
    assert code == 0, err


MISTAKES = [
    ("audit model.json three.csv --label y --eps 1", "check that --label names the column that"),
    ("audit model.json objects.npz --eps 1", "objects.npz is no .npz file, or holds arrays of obj"),
    ("audit model.json rows.csv --label y --threat bytes.toml", "bytes.toml is no TOML: 'utf-8'"),
    ("audit model.json rows.csv --label y --eps 1 --fail-under 60", "a share from 0 to 1, such as"),
    ("certify model.json rows.csv --label y --eps 1 --fail-under -1", "must be a share from 0 to"),
    ("predict model.json other.csv --label y", "such as --classes no,yes."),
    ("convert pipeline.joblib out.onnx", "This is a pickled object, not a model file; open it"),
    (
        "train other.csv --label y --eps 1 --kind regression",
        "the column of labels holds 'no'; leave",
    ),
    (
        "train fractions.csv --label income --eps 1",
        "which is no class; pass --kind regression to predict",
    ),
    ("audit model.json rows.csv --label z --eps 1", "rows.csv has no column 'z' for --label; its"),
    ("audit model.json rows.csv --eps 1", "The labels are missing; say which column holds them"),
    ("audit model.json few.csv --label y --eps 1", "missing: 'age'."),
    ("audit model.json words.csv --label y --eps 1", "column 'income' of X holds"),
    ("audit model.json rows.xlsx --label y --eps 1", "rows.xlsx is of no type known here; rows"),
    ("audit model.json none.csv --label y --eps 1", "'none.csv' does not exist; check the name"),
    ("audit model.json empty.csv --label y --eps 1", "empty.csv could not be read as .csv: No col"),
    ("audit model.json rows.csv --label y --eps 1 --out no/r.html", "there is no directory no."),
    ("audit model.json rows.csv --label y --eps 1 --out r.pdf", "--out must end in .html or .json"),
    ("attack nothing.json rows.csv --label y --out x.pdf", "x.pdf must end in .csv, .csv.gz, .par"),
    ("audit model.json rows.csv --label y", "in one way: --eps NUMBER, --share NUMBER or --threat"),
    (
        "audit model.json rows.csv --label y --eps 1 --share 0.1",
        "in one way: --eps NUMBER, --share",
    ),
    ("audit model.json rows.csv --label y --share 0.1 --low 0", "--low, --high and --norm go with"),
    ("audit model.json rows.csv --label y --share -1", "share must be a finite number >= 0, got"),
    ("audit model.json rows.csv --label y --threat bad.toml", "'salary'"),
    (
        "audit model.json rows.csv --label y --threat odd.toml",
        "odd.toml has the key 'epsilon', which no threat has",
    ),
    ("audit model.json rows.csv --label y --threat cut.toml", "cut.toml is no TOML"),
    ("audit model.json rows.csv --label y --eps -1", "eps must be a finite number >= 0, got eps=-"),
    ("audit model.json rows.csv --label y --eps 1 --norm 7", "norm must be"),
    ("audit pipeline.joblib rows.csv --label y --eps 1", "opening one runs whatever code is in it"),
    ("audit rows.csv rows.csv --label y --eps 1", "A model file begins with"),
    ("audit model.json rows.csv --label y --eps 1 --image 5", "--image must be HEIGHTxWIDTH"),
    (
        "audit model.json other.csv --label y --eps 1",
        "The labels are called 'no', 'yes' in the file, and '0', '1' by the model; say what the "
        "model's 0, 1 are called, in this order, such as --classes no,yes.",
    ),
    ("certify model.json rows.csv --label y --eps 1 --classes a,b", "such as --classes 0,1."),
    ("attack model.json rows.csv --label y --method guess", "method must be one of"),
    ("train train.csv --label y --eps 1 --set depth=3", "has no parameter 'depth'; it has"),
    ("train train.csv --label y --eps 1 --set depth", "--set must be NAME=VALUE"),
    ("check rows.csv --model model.json --data rows.csv --label y", "is no JSON file"),
    ("reproduce table9", "'table9' is no table or figure"),
    ("audit model.json", "Missing argument"),
]


@pytest.mark.parametrize(("line", "said"), MISTAKES)
def test_mistakes_are_one_sentence_and_code_2(line, said, here):
    rows = pd.read_csv("rows.csv")
    rows.drop(columns="age").to_csv("few.csv", index=False)
    rows.assign(income="a lot").to_csv("words.csv", index=False)
    rows.assign(y=np.where(rows.y > 0, "yes", "no")).to_csv("other.csv", index=False)
    rows.assign(y=np.resize(["a", "b", "c"], len(rows))).to_csv("three.csv", index=False)
    np.savez(here / "objects.npz", X=np.array([["a", 1]], dtype=object))
    rows.assign(income=rows.income + 0.5).to_csv("fractions.csv", index=False)
    (here / "bytes.toml").write_bytes(b"\xff\xfe")
    (here / "rows.xlsx").write_bytes(b"x")
    (here / "empty.csv").write_text("")
    (here / "bad.toml").write_text("[eps]\nsalary = 3\n")
    (here / "odd.toml").write_text("eps = 1\nepsilon = 3\n")
    (here / "cut.toml").write_text("eps = \n")
    code, _, err = run(*line.split())
    assert code == 2, err
    assert said in err
    assert "Traceback" not in err
    if not said.startswith("Missing"):
        assert err.startswith("hardwood: ")
        assert err.count("\n") == 1


def test_debug_shows_where_an_error_comes_from(here):
    with pytest.raises(ValueError, match="no column 'z'"):
        run(*"audit model.json rows.csv --label z --eps 1 --debug".split())


def test_reproduce_looks_for_its_data_before_it_announces_hours(here, monkeypatch):
    monkeypatch.setenv("HARDWOOD_DATA", str(here))
    code, out, err = run(*"reproduce table3 --set higgs_subset".split())
    assert code == 2
    assert "higgs_subset is not for download; it needs" in err
    assert "hours" not in out
    assert "minutes" not in out
