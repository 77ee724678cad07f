"""The scikit-learn protocol around the ensemble room, and nothing else."""
