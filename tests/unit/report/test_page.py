"""The page of an audit: one file, no request, readable on any screen."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --virtual-time-budget=4000"
).split()


@pytest.fixture(scope="module")
def page():
    rng = np.random.default_rng(0)
    names = ["income", "age", "<b>debt & co</b>", "a column with a very long name " * 3]
    X = pd.DataFrame(rng.normal([50_000, 40, 10, 0], [9_000, 9, 4, 1], (300, 4)), columns=names)
    y = np.where(X["income"] + 900 * X["age"] > 86_000, "APPROVE", "DECLINE")
    threat = hw.Threat({names[0]: 2_000, names[1]: 1, names[2]: 1, names[3]: 0.1})
    natural = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    robust = hw.RobustDecisionTreeClassifier(threat=threat, max_depth=6).fit(X, y)
    return hw.audit(natural, X, y, threat, twin=robust).to_html()


@pytest.fixture(scope="module")
def number_page():
    """The page of a model that predicts numbers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["size", "age", "distance to the sea"])
    y = 90_000 * X["size"] - 4_000 * X["age"] + rng.normal(0, 9_000, 200)
    # Its name is wider than a phone.
    model = HistGradientBoostingRegressor(max_iter=5, random_state=0).fit(X, y)
    twin = hw.RobustGradientBoostingRegressor(eps=0.1, n_estimators=5, max_depth=3).fit(X, y)
    return hw.audit(model, X, y, 0.1, twin=twin).to_html()


def test_no_request_leaves_the_page(page):
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)="(?!data:|#)""", page)
    assert not re.findall(r"url\(|@import|https?://", page)


def test_names_from_the_data_are_text_not_markup(page):
    assert "<b>debt" not in page
    assert "&lt;b&gt;debt &amp; co&lt;/b&gt;" in page


def test_the_page_answers_how_fragile_where_and_what_to_do(page):
    for heading in (
        "How fragile is Decision<wbr>Tree<wbr>Classifier?",
        "What the adversary may do",
        "How accuracy falls as the adversary gets stronger",
        "What hardening gives",
        "What to do",
        "The most fragile rows",
        "Where the adversary strikes",
        "Class by class",
        "What was checked",
    ):
        assert heading in page, heading
    assert re.search(r"income</span> <span class=\"value\">[\d,.]+ → [\d,.]+", page)


def test_a_notebook_shows_it_in_a_frame(page):
    report = hw.Audit({})
    report.to_html = lambda: page
    shown = report._repr_html_()
    assert shown.startswith("<iframe")
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == page


def test_wide_tables_stay_small():
    rng = np.random.default_rng(0)
    X = rng.random((1_500, 1_700))
    y = (X[:, :40].sum(axis=1) > 20).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    report = hw.audit(tree, X, y, 0.01)
    assert len(report.to_html()) < 500_000
    assert len(report.to_json()) < 500_000


MEASURE = Path(__file__).with_name("measure.html").read_text()


@pytest.mark.skipif(
    BROWSER is None, reason="no Chromium here; the page was not opened in a browser"
)
@pytest.mark.parametrize("kind", ["page", "number_page"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(kind, scheme, tmp_path, request):
    inside = json.dumps(request.getfixturevalue(kind)).replace("</", "<\\/")
    (tmp_path / "measure.html").write_text(
        MEASURE.replace("const page = PAGE", f"const page = {inside}").replace(
            "WIDTHS", "[390, 1280]"
        )
    )
    done = subprocess.run(
        [
            BROWSER,
            *FLAGS,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
            "--dump-dom",
            "--enable-logging=stderr",
            str(tmp_path / "measure.html"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ":CONSOLE" not in done.stderr, done.stderr
    told = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.S)
    assert told, done.stdout[-500:] + done.stderr[-2000:]
    for one in json.loads(html.unescape(told[1])):
        assert one["dark"] == (scheme == "dark")
        assert one["requests"] == 0
        assert one["scroll"] <= one["width"], "wider than the screen"
        assert len(one["charts"]) == 2, "every chart is visible, once"
        assert one["letters"] > 9, "letters of charts are readable"
        assert one["n_words"] > 100
        assert one["poor"] == [], "contrast below 4.5"
        assert one["focus"] >= 3
