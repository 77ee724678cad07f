"""Train on Ray: every worker of Ray Train calls fit_part with its own rows."""

from pathlib import Path

import numpy as np
import ray
from ray.train import ScalingConfig
from ray.train.xgboost import XGBoostTrainer
from sklearn.datasets import load_breast_cancer

import hardwood as hw


def work(config):
    """What each worker does; the table stands for files that all of them can read."""
    workers = hw.distributed.Communicator()  # Ray has connected them for XGBoost
    X, y = load_breast_cancer(return_X_y=True)
    mine = np.array_split(np.arange(len(X)), workers.size)[workers.rank]
    model = hw.RobustGradientBoostingClassifier(eps=0.3, inner="exact", n_estimators=10, n_jobs=1)
    fitted = hw.distributed.fit_part(model, X[mine], y[mine], communicator=workers)
    if workers.rank == 0:  # every worker has the same model
        fitted.save_model(config["path"])


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False)
    XGBoostTrainer(
        work,
        train_loop_config={"path": str(Path("model.json").resolve())},
        scaling_config=ScalingConfig(num_workers=2),
    ).fit()
    ray.shutdown()
