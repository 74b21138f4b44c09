"""Files of strings with labels or targets, read as datasets, and what is in them."""

from sweeps.datasets.reading import FileContent, read_content, read_dataset

__all__ = ["FileContent", "read_content", "read_dataset"]
