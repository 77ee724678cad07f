"""The guide's examples with other schedulers than Dask, in processes of their own.

They are large and not installed with the other tests: `pip install "ray[train]" pyspark`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

import hardwood as hw

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize(
    ("package", "example"), [("ray.train", "ray_workers.py"), ("pyspark", "spark_workers.py")]
)
def test_workers_of_other_schedulers_train_the_model_of_one_process(package, example, tmp_path):
    pytest.importorskip(package, reason=f"{package} is not installed", exc_type=ImportError)
    ended = subprocess.run(
        [sys.executable, GUIDE / example],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},  # that Spark starts workers with
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    X, y = load_breast_cancer(return_X_y=True)
    model = hw.RobustGradientBoostingClassifier(eps=0.3, inner="exact", n_estimators=10, n_jobs=1)
    model.fit(X, y).save_model(tmp_path / "alone.json")
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "alone.json").read_bytes()
