"""The datasets that this process knows by their digest, and where it looks for others."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from seqcls.datasets.dataset import Dataset
from seqcls.errors import ConfigError, SeqclsError

KEPT = 16
"""Datasets, and sources of others, that are kept at most: those that were asked for last."""

Source = Callable[[str], Dataset | None]

_lock = threading.Lock()
_known: OrderedDict[str, Dataset] = OrderedDict()
_sources: OrderedDict[str, Source] = OrderedDict()


def remember(dataset: Dataset) -> str:
    """Keeps a dataset for those who ask for its digest, which is returned."""
    digest = dataset.digest
    with _lock:
        _known[digest] = dataset
        _known.move_to_end(digest)
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return digest


def add_source(name: str, source: Source) -> None:
    """Has datasets looked for in one place more, such as a database; a name stands for one."""
    with _lock:
        _sources[name] = source
        _sources.move_to_end(name)
        while len(_sources) > KEPT:
            _sources.popitem(last=False)


def is_known(digest: str) -> bool:
    """Whether a dataset need not be looked for."""
    return digest in _known


def dataset_of(digest: str) -> Dataset:
    """The dataset of a digest.

    Raises:
        ConfigError: it is in no place that is known.
    """
    kept = _known.get(digest)
    if kept is not None:
        return kept
    if not digest:
        raise ConfigError(
            "dataset='': expected strings; name a file as path='data.csv' in a specification"
        )
    reason = "no file that was read and no database that is open has it"
    with _lock:
        sources = list(reversed(_sources.values()))
    for source in sources:
        try:
            dataset = source(digest)
        except SeqclsError as error:
            reason = str(error)
            continue
        if dataset is not None:
            remember(dataset)
            return dataset
    raise ConfigError(f"dataset='{digest[:12]}…': {reason}")
