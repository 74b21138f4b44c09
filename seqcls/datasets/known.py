"""The datasets that this process knows by their digest, and where it looks for others."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from seqcls.datasets.dataset import Dataset
from seqcls.errors import ConfigError, SeqclsError

KEPT = 16
"""Datasets that are kept as they are, however large; more, as long as all are `MOST_BYTES`."""

MOST_BYTES = 500_000_000

MOST_PACKED = 2_000_000_000
"""Bytes of what is kept packed, as nothing else may have the rows of a file."""

MOST_SOURCES = 1_000
"""Places where datasets are looked for; one holds no connection while it is not asked."""

Source = Callable[[str], Dataset | None]

_lock = threading.Lock()
_known: OrderedDict[str, Dataset] = OrderedDict()
_packed: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
"""Names and packs, by their digest."""
_sources: OrderedDict[str, Source] = OrderedDict()


def remember(dataset: Dataset) -> str:
    """Keeps a dataset for those who ask for its digest, which is returned.

    A sweep may name any number of files: those that were not asked for last are kept packed.
    """
    digest = dataset.digest
    with _lock:
        _known[digest] = dataset
        _known.move_to_end(digest)
        size, old = sum(map(_size, _known.values())), []
        while len(_known) > KEPT and size > MOST_BYTES:
            old.append(_known.popitem(last=False))
            size -= _size(old[-1][1])
    for left, gone in old:
        _pack(left, gone)
    return digest


def _pack(digest: str, dataset: Dataset) -> None:
    content = dataset.to_bytes()
    with _lock:
        _packed[digest] = dataset.name, content
        while sum(len(content) for _, content in _packed.values()) > MOST_PACKED:
            _packed.popitem(last=False)


def _size(dataset: Dataset) -> int:
    targets = 0 if dataset.targets is None else dataset.targets.nbytes
    return int(dataset.strings.letters.nbytes + targets)


def add_source(name: str, source: Source) -> None:
    """Has datasets looked for in one place more, such as a database; a name stands for one."""
    with _lock:
        _sources[name] = source
        _sources.move_to_end(name)
        while len(_sources) > MOST_SOURCES:
            _sources.popitem(last=False)


def is_known(digest: str) -> bool:
    """Whether a dataset need not be looked for."""
    return digest in _known or digest in _packed


def dataset_of(digest: str) -> Dataset:
    """The dataset of a digest.

    Raises:
        ConfigError: it is in no place that is known.
    """
    kept = _known.get(digest)
    if kept is not None:
        return kept
    if (packed := _packed.get(digest)) is not None:
        name, content = packed
        dataset = Dataset.from_bytes(content, name)
        remember(dataset)
        return dataset
    if not digest:
        raise ConfigError(
            "dataset='': expected strings; name a file as path='data.csv' in a specification"
        )
    reason = "no file that was read and no database that is open has it"
    with _lock:
        sources = list(reversed(_sources.values()))
    for source in sources:
        try:
            found = source(digest)
        except SeqclsError as error:
            reason = str(error)
            continue
        if found is not None:
            remember(found)
            return found
    raise ConfigError(f"dataset='{digest[:12]}…': {reason}")
