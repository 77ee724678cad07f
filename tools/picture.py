"""Draw docs/images/curve.svg: the README's model and its twin. Run by ``make picture``."""

import re
from pathlib import Path

import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import hardwood as hw
from hardwood.report import svg

OUT = Path(__file__).parents[1] / "docs" / "images" / "curve.svg"
STYLE = (
    "text{font:12.5px system-ui,sans-serif;fill:#565d65}"
    ".tick,.axis,.threat-word{text-anchor:middle}"
    ".side{text-anchor:end}.rule{stroke:#dcd9d1}.line{fill:none;stroke-width:2.4}"
    ".threat{stroke:#1d2125;stroke-width:1.4;stroke-dasharray:2 3}"
    ".threat-word{fill:#1d2125;font-weight:600}.proven{stroke:#b93a12}.twin{stroke:#1c7a4f}"
    ".found{stroke:none}.below,.between{fill:none}"
    ".guess{stroke:#6b7178;stroke-width:1.4;stroke-dasharray:6 4}.key{font-weight:600}"
)
KEYS = (
    (480, 52, "#1c7a4f", "its robust twin, proven right"),
    (300, 190, "#b93a12", "XGBoost, proven right"),
    (580, 138, "#6b7178", "always the same answer"),
)


def main():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = xgb.XGBClassifier(n_estimators=100, max_depth=4, tree_method="exact")
    model.fit(X_train, y_train)
    threat = hw.Threat.from_frame(X_train, share=0.1)
    twin = hw.harden(model, X_train, y_train, threat)
    report = hw.audit(model, X_test, y_test, threat, twin=twin)
    chart = re.match(r"<svg[^>]*>(.*?)</svg>", svg.curve_chart(report.content), re.S)[1]
    size = 'width="760" height="330" viewBox="0 0 760 330"'
    keys = "".join(
        f'<text class="key" x="{x}" y="{y}" style="fill:{colour}">{name}</text>'
        for x, y, colour, name in KEYS
    )
    OUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{STYLE}</style>'
        f'<rect width="760" height="330" fill="#fcfbf8"/>{chart}{keys}</svg>\n'
    )
    print(f"{OUT.relative_to(Path.cwd())}: {report!r}")


if __name__ == "__main__":
    main()
