"""The paper's data sets: split and scaled as in the paper."""

from hardwood.datasets.dataset import Dataset, find, load, names

__all__ = ["Dataset", "find", "load", "names"]
