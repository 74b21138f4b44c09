"""Strings of one's own with their labels or targets, as values: what a file of them holds."""

from seqcls.datasets.dataset import SPLITS, Dataset, Row

__all__ = ["SPLITS", "Dataset", "Row"]
