"""The audit of a model that predicts numbers: in its units, from both sides, checkable."""

import copy
import itertools
import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import hardwood as hw

THREAT = hw.Threat(eps={"bmi": 0.01, "bp": (0.0, 0.02)})


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X[:340], y[:340], X[340:].reset_index(drop=True), y[340:].to_numpy()


@pytest.fixture(scope="module")
def model(diabetes):
    return GradientBoostingRegressor(n_estimators=15, random_state=0).fit(*diabetes[:2])


@pytest.fixture(scope="module")
def report(diabetes, model):
    return hw.audit(model, *diabetes[2:], THREAT)


def test_the_findings_are_those_of_enumeration(diabetes, model, report):
    """All values of two columns that matter: the ends of the ball, and the thresholds in it."""
    X, y = diabetes[2:]
    trees = hw.load_model(model)
    said = model.predict(X)
    error = []
    for row, truth in zip(X.to_numpy()[:25], y[:25], strict=True):
        choices = []
        for column, (down, up) in (("bmi", (0.01, 0.01)), ("bp", (0.0, 0.02))):
            f = X.columns.get_loc(column)
            inside = trees.threshold[trees.feature == f].astype(float)
            inside = inside[(inside > row[f] - down) & (inside < row[f] + up)]
            choices.append([row[f] - down, row[f], row[f] + up, *inside, *np.nextafter(inside, -9)])
        table = np.repeat(row[None], len(choices[0]) * len(choices[1]), axis=0)
        both = np.array(list(itertools.product(*choices)))
        table[:, [X.columns.get_loc("bmi"), X.columns.get_loc("bp")]] = both
        error.append(np.abs(trees.predict(table) - truth).max())
    again = hw.audit(model, X[:25], y[:25], THREAT)
    assert again.found_error == again.proven_error == pytest.approx(np.mean(error), rel=1e-12)
    assert report.error == pytest.approx(np.abs(said - y).mean(), rel=1e-12)
    assert report.content["moves"]["exact"] == len(X)


def test_curves_keep_to_their_sides_and_grow(report):
    strength = report.content["strength"]
    assert [one["multiple"] for one in strength] == [0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3]
    errors = [one["found"] for one in strength]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(report.content["under_attack"]["clean"])
    assert errors[4] == pytest.approx(report.found_error)
    curve = report.content["moves"]["curve"]
    assert all(one["proven"] <= one["found"] for one in curve)
    assert curve[-1]["proven"] == report.content["moves"]["rows"]


def test_sentences_are_true(diabetes, model, report):
    X, _ = diabetes[2:]
    fragile = report.content["fragile"]
    moves = [abs(one["becomes"] - one["said"]) for one in fragile]
    assert moves == sorted(moves, reverse=True)
    for one in fragile:
        row = X.iloc[[one["row"]]].copy()
        assert model.predict(row)[0] == one["said"]
        for change in one["changes"]:
            assert row[change["column"]].item() == change["from"]
            row[change["column"]] = change["to"]
        assert model.predict(row)[0] == one["becomes"]
        assert one["sentence"].endswith(f"to {hw.model.words.number(one['becomes'], 4)}")
    assert list(report.fragile.columns) == ["row", "said", "becomes", "changes", "sentence"]


def test_a_column_alone(diabetes, model, report):
    X, _ = diabetes[2:]
    alone = {one["column"]: one["found"] for one in report.content["alone"]["columns"]}
    assert set(alone) == {"bmi", "bp"}
    single = hw.output_range(model, X, hw.Threat({"bmi": 0.01}))
    said = model.predict(X)
    largest = np.maximum(single.highest - said, said - single.lowest)
    assert alone["bmi"] == pytest.approx(largest.mean())


def test_the_page_the_file_and_the_words(report, tmp_path):
    schema = json.loads((files("hardwood.report") / "regression.schema.json").read_text())
    report.to_json(tmp_path / "report.json")
    jsonschema.validate(json.loads((tmp_path / "report.json").read_text()), schema)
    page = report.to_html()
    for heading in (
        "How the error grows as the adversary gets stronger",
        "How far predictions can be moved",
        "What one column alone can do",
        "What was checked",
    ):
        assert heading in page, heading
    assert "<script" not in page
    assert "mean absolute error under attack" in report.summary()
    assert repr(report).startswith("RegressionAudit(model='GradientBoostingRegressor', error=")
    with pytest.raises(AttributeError, match="has no accuracy; see error, found_error and proven_"):
        _ = report.certified_accuracy


@pytest.mark.parametrize("end", [0.5, 3.0, 2**31, 10**30])
def test_an_axis_has_as_many_ticks_wherever_it_ends(report, end):
    content = copy.deepcopy(report.content)
    plain = report.to_html().count('class="tick"')
    content["strength"][-1]["multiple"] = end
    assert hw.RegressionAudit(content).to_html().count('class="tick"') == plain


def test_a_report_is_replayed_and_tampering_is_found(diabetes, model, report, tmp_path):
    X, y = diabetes[2:]
    report.to_json(tmp_path / "report.json")
    written = hw.Audit.from_json(tmp_path / "report.json")
    assert isinstance(written, hw.RegressionAudit)
    answers = written.check(model, X, y)
    assert [one["name"] for one in answers] == [
        "seal",
        "fingerprints",
        "sums",
        "words",
        "examples",
        "ranges",
        "strength",
        "one column alone",
    ]
    assert all(one["passed"] for one in answers), answers

    def failed(change):
        content = copy.deepcopy(report.content)
        change(content)
        return {one["name"] for one in hw.Audit.check(hw.RegressionAudit(content), model, X, y)
                if not one["passed"]}  # fmt: skip

    assert failed(lambda c: c["under_attack"].update(proven=0.0)) == {"sums"}
    assert failed(lambda c: c["fragile"][0].update(becomes=0.0)) == {"examples"}
    assert failed(lambda c: c["answers"].update(upper=c["answers"]["lower"])) >= {"sums", "ranges"}
    assert failed(lambda c: c["model"].update(sha256="0" * 64)) == {"fingerprints"}
    assert failed(lambda c: c["model"].update(n_leaves=1)) == {"sums"}
    assert failed(lambda c: c["threat"].update(words=["Nothing changes."])) == {"words"}
    assert failed(lambda c: c["fragile"].pop(0)) == {"words"}
    assert failed(lambda c: c["checks"].pop()) == {"words"}
    assert failed(lambda c: c["fragile"][0].update(sentence="nothing moves")) == {"examples"}
    assert failed(lambda c: c["strength"][3].update(proven=0.0)) == {"strength"}
    assert failed(lambda c: c["strength"].pop()) == {"strength"}
    assert failed(lambda c: c["alone"]["columns"][0].update(proven=0.0)) == {"one column alone"}
    assert failed(lambda c: c["alone"]["columns"].reverse()) == {"one column alone"}


@pytest.fixture(scope="module")
def twin(diabetes, model):
    return hw.harden(model, *diabetes[:2], THREAT)


@pytest.fixture(scope="module")
def both(diabetes, model, twin):
    return hw.audit(model, *diabetes[2:], THREAT, twin=twin)


def test_a_twin_stands_beside_the_model(diabetes, report, both, twin):
    alone = hw.audit(twin, *diabetes[2:], THREAT)
    told = both.content["twin"]
    for name in ("model", "error", "under_attack", "moves", "strength", "answers"):
        assert told[name] == alone.content[name], name
        assert both.content[name] == report.content[name], name
    schema = json.loads((files("hardwood.report") / "regression.schema.json").read_text())
    jsonschema.validate(json.loads(both.to_json()), schema)
    page = both.to_html()
    assert "What hardening gives" in page
    assert 'class="line twin"' in page
    assert f"the hardened twin errs by {hw.model.words.number(alone.error, 4)} without" in (
        both.summary()
    )


def test_the_page_says_whether_a_twin_pays(both):
    content = copy.deepcopy(both.content)
    for proven, said in (
        (both.found_error - 1, "Use the twin where the adversary is real: under attack it errs by"),
        (both.found_error, "It is not proven that this twin pays: under attack it errs by"),
        (None, "It is not proven that this twin pays: under attack it errs by"),
    ):
        content["twin"]["under_attack"].update(found=1.0, proven=proven)
        assert said in hw.RegressionAudit(content).to_html()


def test_claims_about_a_twin_are_asked_again(diabetes, model, both, twin):
    X, y = diabetes[2:]

    def failed(change, twin):
        content = copy.deepcopy(both.content)
        change(content["twin"])
        answers = hw.RegressionAudit(content).check(model, X, y, twin=twin)
        return {one["name"] for one in answers if not one["passed"]}

    for given in (None, twin):
        assert failed(lambda _: None, given) == set()
    lie = {"found": 1.0, "proven": 1.0}
    assert failed(lambda t: t["under_attack"].update(lie), None) == {"twin"}
    assert failed(lambda t: t["under_attack"].update(lie), twin) == {"twin's sums"}
    assert failed(lambda t: t["answers"]["upper"].pop(), None) == {"twin"}
    narrow = failed(lambda t: t["answers"].update(upper=t["answers"]["lower"]), twin)
    assert narrow == {"twin's sums", "twin's ranges", "twin's strength"}
    assert failed(lambda t: t["strength"][3].update(proven=0.0), twin) == {"twin's strength"}
    assert failed(lambda _: None, model) == {"twin's fingerprints"}


def test_a_twin_of_another_kind_is_refused(diabetes, model):
    X, y = diabetes[2:]
    stump = hw.RobustDecisionTreeClassifier(eps=0, max_depth=1).fit(X, y > 100)
    with pytest.raises(ValueError, match="got a classifier beside a model that predicts numbers"):
        hw.audit(model, X, y, THREAT, twin=stump)
    with pytest.raises(ValueError, match="got a model that predicts numbers beside a classifier"):
        hw.audit(stump, X, y > 100, THREAT, twin=model)


def test_a_pipeline_in_its_own_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.integers(20, 200, 200), "town": rng.choice(list("abc"), 200)})
    y = 3.0 * X["size"] + 90 * (X["town"] == "a")
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeRegressor(max_depth=5, random_state=0)).fit(X, y)
    report = hw.audit(model, X, y, hw.Threat({"size": 4.5, "town": hw.ANY}), n_distances=40)
    assert report.content["moves"]["exact"] == report.content["moves"]["rows"] == 40
    for one in report.content["fragile"]:
        for change in one["changes"]:
            assert change["column"] != "size" or change["to"] == round(change["to"])
    assert all(one["passed"] for one in report.check(model, X, y, n_rows=10))


def test_open_rows_and_misuse_are_told(diabetes):
    X, y = diabetes[2:]
    deep = GradientBoostingRegressor(n_estimators=60, max_depth=8, random_state=0).fit(
        *diabetes[:2]
    )
    rushed = hw.audit(deep, X, y, 0.02, total_time_limit=0.001)
    assert rushed.proven_error > rushed.found_error
    assert {one["name"]: one["passed"] for one in rushed.checks}["every row is decided"] is False
    assert "at least" in rushed.summary()
    assert rushed.to_html()
    with pytest.raises(ValueError, match="threshold is for classifiers, and this model predicts"):
        hw.audit(deep, X, y, 0.02, threshold=0.3)
    with pytest.raises(ValueError, match=r"one number for each of the 102 rows, got shape \(3,\)"):
        hw.audit(deep, X, y[:3], 0.02)
    with pytest.raises(ValueError, match="The threat moves no column"):
        hw.audit(deep, X, y, hw.Threat({"bmi": 0}))
