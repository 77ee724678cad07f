"""Train on Spark: every task of a barrier stage calls fit_part with the rows of its partition."""

import numpy as np
from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession
from sklearn.datasets import load_breast_cancer
from xgboost.tracker import RabitTracker

import hardwood as hw

MODEL = hw.RobustGradientBoostingClassifier(eps=0.3, inner="exact", n_estimators=10, n_jobs=1)


def worker(host, port):
    """Make the function that Spark calls with the rows of each partition, the label last."""

    def work(rows):
        rank = BarrierTaskContext.get().partitionId()
        table = np.array(list(rows))
        with hw.distributed.connect(host, port, name=f"{rank:05d}") as workers:
            fitted = hw.distributed.fit_part(
                MODEL, table[:, :-1], table[:, -1].astype(int), communicator=workers
            )
        if rank == 0:  # every worker has the same model
            yield fitted

    return work


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate().sparkContext
    X, y = load_breast_cancer(return_X_y=True)
    rows = spark.parallelize(np.column_stack([X, y]).tolist(), 2)
    # Workers meet at a tracker on the driver, in the order of their names.
    host = spark.getConf().get("spark.driver.host")
    tracker = RabitTracker(n_workers=2, host_ip=host, sortby="task")
    tracker.start()
    port = tracker.worker_args()["dmlc_tracker_port"]
    [fitted] = rows.barrier().mapPartitions(worker(host, port)).collect()
    fitted.save_model("model.json")
    spark.stop()
