"""The findings of an audit: true, complete, and not to be tampered with."""

import copy
import json
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw
from hardwood.report import findings, words
from hardwood.report.audit import seal

THREAT = hw.Threat(eps={"mean radius": 0.5, "mean texture": (0.0, 2.0)})


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer(as_frame=True)
    X = data.data[["mean radius", "mean texture", "mean area", "mean symmetry"]]
    y = np.where(data.target == 1, "benign", "malignant")
    return X[:400], y[:400], X[400:].reset_index(drop=True), y[400:]


@pytest.fixture(scope="module")
def forest(cancer):
    return RandomForestClassifier(12, max_depth=4, random_state=0).fit(*cancer[:2])


@pytest.fixture(scope="module")
def report(cancer, forest):
    return hw.audit(forest, *cancer[2:], THREAT)


def test_the_findings_are_those_of_the_questions_asked_alone(report, cancer, forest):
    X, y = cancer[2:]
    content = report.content
    certificate = hw.certify(forest, X, y, THREAT)
    assert report.accuracy == forest.score(X, y)
    assert report.certified_accuracy == certificate.certified_accuracy
    assert report.attacked_accuracy == certificate.attacked_accuracy
    by_multiple = {one["multiple"]: one for one in content["curve"]}
    for multiple in (0.5, 2.0):
        stronger = hw.Threat({"mean radius": 0.5 * multiple, "mean texture": (0.0, 2.0 * multiple)})
        alone = hw.certify(forest, X, y, stronger)
        assert by_multiple[multiple]["certified"] == np.count_nonzero(alone.status == "certified")
    assert by_multiple[0.0]["certified"] == content["accuracy"]["right"]


def test_classes_add_up(report, cancer):
    classes = {one["label"]: one for one in report.content["classes"]}
    assert {name: one["rows"] for name, one in classes.items()} == {
        "benign": np.count_nonzero(cancer[3] == "benign"),
        "malignant": np.count_nonzero(cancer[3] == "malignant"),
    }
    assert (
        sum(one["certified"] for one in classes.values())
        == (report.content["certificate"]["certified"])
    )
    for one in classes.values():
        assert one["certified"] <= one["right"] <= one["rows"]


def test_sentences_are_true_to_the_last_digit(report, cancer, forest):
    X, y = cancer[2:]
    fragile = report.content["fragile"]
    assert fragile
    assert [one["multiple"] for one in fragile] == sorted(one["multiple"] for one in fragile)
    for one in fragile:
        row = X.iloc[[one["row"]]].copy()
        for change in one["changes"]:
            assert row[change["column"]].item() == change["from"]
            row[change["column"]] = change["to"]
            assert (
                f"{change['column']} {change['shown_from']} → {change['shown_to']}"
                in (one["sentence"])
            )
        assert forest.predict(row)[0] == one["becomes"] != one["label"] == y[one["row"]]
        assert {change["column"] for change in one["changes"]} <= {"mean radius", "mean texture"}
        if one["multiple"] <= 1:
            low, high = THREAT.ball(X.iloc[[one["row"]]].to_numpy(), list(X.columns))
            assert np.all((low <= row.to_numpy()) & (row.to_numpy() <= high))


def test_a_column_alone_turns_what_a_threat_of_that_column_turns(report, cancer, forest):
    X, y = cancer[2:]
    alone = {one["column"]: one["turned"] for one in report.content["alone"]["columns"]}
    assert set(alone) == {"mean radius", "mean texture"}
    right = forest.predict(X) == y
    for name, step in THREAT.eps.items():
        single = hw.certify(forest, X[right], y[right], hw.Threat({name: step}))
        assert alone[name] == np.count_nonzero(single.status == "broken")


@pytest.fixture(scope="module")
def loans():
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame(
        {
            "income": rng.lognormal(10.6, 0.4, n).round(-2),
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["clerk", "manager", "nurse"], n),
        }
    )
    score = X["income"] / 10_000 + X["age"] / 40 + 2 * (X["job"] == "manager")
    y = np.where(score + rng.normal(0, 0.5, n) > 6.5, "APPROVE", "DECLINE")
    columns = make_column_transformer(
        (OneHotEncoder(), ["job"]), (StandardScaler(), ["income", "age"])
    )
    model = make_pipeline(columns, RandomForestClassifier(8, max_depth=4, random_state=0))
    return model.fit(X[:350], y[:350]), X[350:].reset_index(drop=True), y[350:]


def test_a_pipeline_in_its_own_columns_with_its_own_threshold(loans):
    model, X, y = loans
    threat = hw.Threat(
        {"income": hw.relative(0, 0.1), "age": 1.5, "job": {"clerk": ["manager"]}}, only="DECLINE"
    )
    report = hw.audit(model, X, y, threat, threshold=0.4)
    assert report.content["model"]["name"] == "RandomForestClassifier"
    certificate = hw.certify(model, X, y, threat, threshold=0.4)
    assert report.certified_accuracy == certificate.certified_accuracy
    by_class = certificate.by_class()
    for one in report.content["classes"]:
        assert by_class.loc[one["label"], "certified"] == one["certified"]
    fragile = report.content["fragile"]
    assert {change["column"] for one in fragile for change in one["changes"]} >= {"income", "job"}
    for one in fragile:
        row = X.iloc[[one["row"]]].copy()
        for change in one["changes"]:
            if change["column"] == "job":
                assert (change["shown_from"], change["shown_to"]) == ("clerk", "manager")
                row["job"] = change["shown_to"]
            else:
                row[change["column"]] = change["to"]
                assert change["column"] != "age" or change["to"] == round(change["to"])
        said = np.where(model.predict_proba(row)[:, 1] > 0.4, "DECLINE", "APPROVE")[0]
        assert (y[one["row"]], said) == ("DECLINE", "APPROVE") == (one["label"], one["becomes"])
    again = report.check(model, X, y, n_rows=50)
    assert all(one["passed"] for one in again), again
    for one in report.content["alone"]["columns"]:
        single = hw.Threat({one["column"]: threat.eps[one["column"]]}, only="DECLINE")
        alone = hw.certify(model, X, y, single, threshold=0.4)
        turned = (alone.status == "broken") & (alone.reason != "misclassified")
        assert one["turned"] == np.count_nonzero(turned)


def test_fragile_is_a_frame_and_the_summary_has_counts(report):
    frame = report.fragile
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["row", "label", "becomes", "multiple", "changes", "sentence"]
    text = report.summary()
    assert "of 169)" in text
    assert frame.sentence[0] in text
    assert repr(report).startswith("Audit(model='RandomForestClassifier', accuracy=")


def test_checks_that_pass_are_listed_like_those_that_fail(report, cancer, forest):
    passed = {one["name"]: one["passed"] for one in report.checks}
    assert next(iter(passed)) == "the model was read exactly"
    assert all(passed.values())
    loose = hw.audit(forest, *cancer[2:], 1.0, n_distances=20)
    failed = {one["name"] for one in loose.checks if not one["passed"]}
    assert failed == {"no step is larger than its column", "one size suits all columns"}


def test_trees_without_a_source_are_not_called_checked(cancer):
    trees = hw.load_model(DecisionTreeClassifier(max_depth=3).fit(*cancer[:2]))
    gate = hw.audit(trees, *cancer[2:], THREAT, n_distances=10, name="oak").checks[0]
    assert gate["passed"] is None
    assert gate["words"].startswith("Not compared with its source")


def test_samples_are_said(cancer, forest):
    small = hw.audit(forest, *cancer[2:], THREAT, max_rows=50, n_distances=20, random_state=3)
    assert small.content["certificate"]["rows"] == 50
    assert small.content["distances"]["rows"] == 20
    last = small.checks[-1]
    assert last["passed"] is False
    assert last["words"].startswith("50 of 169 rows were certified or tried, drawn with seed 3")


def test_open_rows_are_told_and_never_certified(cancer):
    forest = RandomForestClassifier(100, random_state=0).fit(*cancer[:2])
    report = hw.audit(forest, *cancer[2:], THREAT, total_time_limit=0.001)
    counts = report.content["certificate"]
    assert counts["unknown"] > 0
    assert counts["rows"] == sum(counts[name] for name in counts if name != "rows")
    assert report.content["open"] == [{"reason": "time limit", "rows": counts["unknown"]}]
    assert "unknown" in report.summary()


@pytest.fixture(scope="module")
def iris():
    """Rows, a natural and a robust tree, and the report about both."""
    X, y = load_iris(return_X_y=True)
    natural = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    robust = hw.RobustDecisionTreeClassifier(eps=0.3, max_depth=4).fit(X, y)
    report = hw.audit(natural, X, y, 0.3, twin=robust)
    return X, y, natural, robust, report


def test_three_classes_and_a_twin(iris):
    report = iris[-1]
    assert len(report.content["classes"]) == 3
    assert (
        report.content["twin"]["certificate"]["certified"]
        > (report.content["certificate"]["certified"])
    )
    assert "hardened twin" in report.summary()
    assert "What hardening gives" in report.to_html()


def test_the_page_says_whether_a_twin_pays(report):
    content = copy.deepcopy(report.content)
    content["twin"] = {name: copy.deepcopy(content[name]) for name in findings.TWIN}
    assert "This twin does not pay: it is proven right on" in hw.Audit(content).to_html()
    content["twin"]["certificate"]["certified"] += 1
    assert "Use the twin where the adversary is real" in hw.Audit(content).to_html()


def test_a_tiny_step_is_told_in_the_digits_of_the_threat():
    X = np.array([[1.02469134], [1.02469134], [0.0], [0.0]])
    tree = DecisionTreeClassifier().fit(X, [1, 1, 0, 0])  # splits at 0.51234567
    X[:2] = np.nextafter(np.float32(0.51234567), np.float32(1))
    report = hw.audit(tree, X, [1, 1, 0, 0], 0.1)
    assert report.fragile.sentence[0].endswith("→ 0.5123 turns 1 into 0")
    assert "less than 0.001" in report.to_html()


def test_fewer_digits_do_not_leave_the_threat():
    X = np.array([[0.41234567], [0.0], [1.0], [1.0]])
    tree = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])  # splits at 0.706172835
    for eps, becomes in ((0.3, 0.71), (0.294, 0.7062), (0.29383, 0.706173)):
        [change] = hw.audit(tree, X[:2], [0, 0], eps).content["fragile"][0]["changes"]
        assert change["to"] == becomes <= X[0, 0] + eps


def test_the_counts_of_a_twin_are_derived_again(iris):
    X, y, natural, robust, report = iris
    schema = json.loads((files("hardwood.report") / "audit.schema.json").read_text())
    jsonschema.validate(json.loads(report.to_json()), schema)

    def failed(content, **more):
        answers = hw.Audit(content).check(natural, X, y, **more)
        return {one["name"] for one in answers if not one["passed"]}

    assert failed(report.content) == failed(report.content, twin=robust) == set()
    assert failed(report.content, twin=natural) == {"twin's fingerprints"}
    better = copy.deepcopy(report.content)
    better["twin"]["certificate"]["certified"] += 1
    assert failed(better) == {"twin"}
    assert failed(better, twin=robust) == {"twin's sums"}
    for place in (("accuracy", "right"), ("accuracy", "majority_rows")):
        better = copy.deepcopy(report.content)
        better["twin"][place[0]][place[1]] += 1
        assert failed(better) == {"twin"}
    better = copy.deepcopy(report.content)
    better["twin"]["classes"][0]["right"] -= 1
    assert failed(better) == {"twin"}
    better = copy.deepcopy(report.content)
    better["twin"]["certificate"]["certified"] += 1
    answers = better["twin"]["answers"]
    answers["status"] = answers["status"].replace("b", "c")
    assert "twin's certificates" in failed(better, n_rows=200, twin=robust)


def test_the_file_follows_its_schema(report, tmp_path):
    schema = json.loads((files("hardwood.report") / "audit.schema.json").read_text())
    report.to_json(tmp_path / "report.json")
    jsonschema.validate(json.loads((tmp_path / "report.json").read_text()), schema)


def replayed(content, cancer, forest, *, honest_seal=False):
    if honest_seal:
        content["seal"] = seal(content)
    answers = hw.Audit(content).check(forest, *cancer[2:], n_rows=200)
    return {one["name"] for one in answers if not one["passed"]}


@pytest.fixture
def written(report, tmp_path):
    report.to_json(tmp_path / "report.json")
    return hw.Audit.from_json(tmp_path / "report.json").content


def test_an_honest_report_holds(written, cancer, forest):
    assert replayed(written, cancer, forest) == set()


def test_a_slip_breaks_the_seal(written, cancer, forest):
    written["made"] = "2020-01-01"
    assert replayed(written, cancer, forest) == {"seal"}


def test_whoever_mends_the_seal_is_found_as_well(written, cancer, forest):
    for tampered, caught in (
        (better_certificate, {"sums"}),
        (better_answers, {"sums", "certificates"}),
        (better_distances, {"sums", "words", "distances", "columns changed"}),
        (another_example, {"examples"}),
        (another_column, {"columns changed"}),
        (fewer_examples, {"columns changed"}),
        (idle_examples, {"columns changed"}),
        (another_model, {"fingerprints"}),
    ):
        content = copy.deepcopy(written)
        tampered(content)
        found = replayed(content, cancer, forest, honest_seal=True)
        assert found >= {max(caught)}, tampered.__name__
        assert found <= caught, tampered.__name__


@pytest.mark.parametrize(
    ("place", "value", "caught"),
    [
        (("model", "n_trees"), 1000, "sums"),
        (("model", "classes", 0), "harmless", "sums"),
        (("data", "n_missing"), 9, "words"),
        (("columns", 0), "mean colour", "words"),
        (("threat", "words"), ["Nothing can change."], "words"),
        (("fragile", 0, "sentence"), "nothing turns benign into malignant", "examples"),
        (("fragile", 0, "changes", 0, "shown_to"), "1,000", "examples"),
        (("fragile", 0, "multiple"), 0.99, "words"),
        (("fragile", slice(0, 1)), [], "words"),
        (("fragile",), [], "words"),
        (("open",), [{"reason": "time limit", "rows": 3}], "words"),
        (("checks", 0, "words"), "All is well.", "words"),
        (("checks", slice(1, 2)), [], "words"),
        (("alone", "columns", 0, "turned"), 0, "one column alone"),
        (("alone", "columns"), [], "one column alone"),
        (("alone", "rows"), 9, "one column alone"),
    ],
)
def test_words_and_columns_alone_are_asked_again(written, cancer, forest, place, value, caught):
    *way, last = place
    part = written
    for step in way:
        part = part[step]
    part[last] = value
    assert replayed(written, cancer, forest, honest_seal=True) == {caught}


def test_rows_cannot_be_left_out(written, cancer, forest):
    answers = written["answers"]
    written["answers"] = {**answers, "rows": [[0, 9]], "status": answers["status"][:10]}
    answers = hw.Audit(written).check(forest, *cancer[2:])
    told = {one["name"]: one["words"] for one in answers if not one["passed"]}
    assert "not those that the seed draws" in told["sums"]


def test_a_file_without_its_seal_is_not_as_it_was_written(written, cancer, forest, tmp_path):
    del written["seal"]
    (tmp_path / "bare.json").write_text(json.dumps(written))
    bare = hw.Audit.from_json(tmp_path / "bare.json")
    first = bare.check(forest, *cancer[2:])[0]
    assert (first["name"], first["passed"]) == ("seal", False)
    assert "its seal is missing" in first["words"]


def test_pictures_of_a_report_are_drawn_again():
    X, y = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    content = hw.audit(tree, X[:40], y[:40], 1, image=(8, 8)).content
    assert all(one["passed"] for one in hw.Audit(content).check(tree, X[:40], y[:40]))
    for name, value in (("height", 16), ("shown", content["images"]["shown"][1:])):
        other = {**content, "images": {**content["images"], name: value}}
        failed = [one for one in hw.Audit(other).check(tree, X[:40], y[:40]) if not one["passed"]]
        assert [one["name"] for one in failed] == ["words"]
        assert "images" in failed[0]["words"]


def test_a_row_that_the_threat_itself_turns_stands_left_of_the_line():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    tree = DecisionTreeClassifier().fit(X, [0, 0, 1, 1])  # splits at 0.5; a row on it goes left
    content = hw.audit(tree, X[2:], [1, 1], 0.5).content
    assert content["certificate"]["broken"] == 2
    bins = content["distances"]["bins"]
    assert content["distances"]["counts"][bins.index(1) - 1] == 2


def better_certificate(content):
    content["certificate"]["certified"] += 1
    content["certificate"]["broken"] -= 1


def better_answers(content):
    content["answers"]["status"] = content["answers"]["status"].replace("b", "c")


def better_distances(content):
    content["answers"]["lower"] = [one and 2 * one for one in content["answers"]["lower"]]
    content["answers"]["upper"] = [one and 2 * one for one in content["answers"]["upper"]]


def another_example(content):
    content["fragile"][0]["changes"][0]["to"] = content["fragile"][0]["changes"][0]["from"]


def another_column(content):
    content["spent"]["columns"][0]["rows"] -= 1


def fewer_examples(content):
    content["answers"]["examples"].pop()


def idle_examples(content):
    for example in content["answers"]["examples"]:
        example[1] = []
    content["spent"] = {
        "rows": len(content["answers"]["examples"]),
        "columns_per_row": 0.0,
        "columns": [],
    }


def another_model(content):
    content["model"]["sha256"] = "0" * 64


def test_a_report_is_read_from_a_file_or_a_text(tmp_path, report):
    path = tmp_path / "x.json"
    text = hw.Audit.from_json(report.to_json(path))
    assert text.content == hw.Audit.from_json(str(path)).content
    assert text.summary() == report.summary()
    with pytest.raises(ValueError, match="The text is no JSON file"):
        hw.Audit.from_json("{ nothing")


def test_files_that_are_no_reports_are_refused(tmp_path, report, cancer, forest):
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="is no JSON file"):
        hw.Audit.from_json(path)
    path.write_text('{"a": 1}')
    with pytest.raises(ValueError, match="is no report of an audit; make one with to_json"):
        hw.Audit.from_json(path)
    path.write_text('{"format": "hardwood-audit", "format_version": 9}')
    with pytest.raises(ValueError, match="has format_version 9, and this hardwood reads 1"):
        hw.Audit.from_json(path)
    broken = {name: value for name, value in report.content.items() if name != "answers"}
    with pytest.raises(ValueError, match="The report is damaged: KeyError at 'answers'"):
        hw.Audit(broken).check(forest, *cancer[2:])
    odd = copy.deepcopy(report.content)
    odd["answers"]["rows"] = [[0, 10**12]]
    with pytest.raises(ValueError, match="The report is damaged: IndexError at rows 0 to 10000000"):
        hw.Audit(odd).check(forest, *cancer[2:])
    odd = copy.deepcopy(report.content)
    odd["threat"]["code"] = "Threat(eps=" + "-" * 20_000 + "1)"
    with pytest.raises(ValueError, match="The report's threat is nested too deeply"):
        hw.Audit(odd).check(forest, *cancer[2:])
    for name, value in (("distances", None), ("curve", []), ("checks", None)):
        with pytest.raises(ValueError, match="The report is damaged"):
            hw.Audit({**report.content, name: value}).to_html()


def test_misuse_is_told(cancer, forest):
    X, y = cancer[2:]
    with pytest.raises(ValueError, match="The threat moves no column, so there is nothing to aud"):
        hw.audit(forest, X, y, hw.Threat({"mean radius": 0}))
    with pytest.raises(ValueError, match="max_rows must be a whole number >= 1, got max_rows=0"):
        hw.audit(forest, X, y, THREAT, max_rows=0)
    with pytest.raises(ValueError, match=r"image=\(3, 3\) has 9 pixels but X has 4 columns"):
        hw.audit(forest, X, y, THREAT, image=(3, 3), n_distances=5)


def test_images_are_shown(cancer, forest):
    report = hw.audit(forest, *cancer[2:], THREAT, image=(2, 2), n_distances=30)
    shown = report.content["images"]["shown"]
    assert shown
    assert all(one["before"].startswith("data:image/png;base64,") for one in shown)
    assert "As images" in report.to_html()


def test_progress_names_its_stages(cancer, forest):
    stages = []
    hw.audit(forest, *cancer[2:], THREAT, n_distances=5, progress=lambda *told: stages.append(told))
    assert {"certifying", "measuring distances", "one column at a time"} <= {s for s, *_ in stages}
    assert all(0 <= done <= total for _, done, total in stages)


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 7, "0.0 % (0 of 7)"),
        (7, 7, "100.0 % (7 of 7)"),
        (99_999, 100_000, "99.9 % (99,999 of 100,000)"),
        (1, 100_000, "0.1 % (1 of 100,000)"),
        (0, 0, "none of 0"),
    ],
)
def test_shares_do_not_round_to_all_or_nothing(part, whole, said):
    assert words.share(part, whole) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (41200, 41950, ("41,200", "41,950")),
        (0.3, 0.30000001, ("0.3", "0.30000001")),
        (1234.5, 1234.75, ("1,234.5", "1,234.75")),
        (float("nan"), 2.0, ("blank", "2")),
        (5.0, np.nextafter(5.0, 6), ("5", "5.000000000000001")),
    ],
)
def test_two_values_look_different(old, new, said):
    assert words.pair(old, new) == said
