"""Groups are timed in a process of their own, which shows too how long one takes to start:
`python -m sweeps.work.timing.process`.

What it is asked comes on its standard input. Once all it needs is imported it says how long that
took, and then what each group takes, as messages on its standard output. It counts its own seconds
only, so that what else the machine does now is not taken for its own.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from seqcls.datasets import Dataset
from seqcls.datasets.known import dataset_of, remember
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import SeqclsError
from seqcls.problem import resolve
from sweeps.processes.python import python
from sweeps.work.executors.messages import Inbox, packed
from sweeps.work.timing.group import Asked, GroupTime, time_group

MOST_SECONDS = 2.0
"""Once so much is spent, no further group is timed."""

CHUNK_BYTES = 1 << 16

PATIENCE_SECONDS = 60
"""Of a processor; what takes more is given up, and nobody waits for it forever."""


@dataclass(frozen=True)
class Times:
    """What was timed."""

    start: float = 0.0
    """Seconds until a process is ready to train."""
    groups: Mapping[str, GroupTime] = field(default_factory=dict)
    """By `RunConfig.group_key`; those that were not reached, or cannot be timed, are missing."""


def time_groups(asked: Sequence[Asked]) -> Times:
    """Times groups, one after another while there is time; those named first come first."""
    if not asked:
        return Times()
    digests = sorted({each.config.dataset for each in asked} - {""})
    datasets = [dataset_of(digest).to_bytes() for digest in digests]
    try:
        process = subprocess.Popen(
            python("sweeps.work.timing.process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return Times()
    with process:
        return _answer(process, packed((list(asked), datasets)))


def _answer(process: "subprocess.Popen[bytes]", message: bytes) -> Times:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError), process.stdin as given:
        given.write(message)
    inbox, start = Inbox(), 0.0
    found: dict[str, GroupTime] = {}
    while piece := os.read(process.stdout.fileno(), CHUNK_BYTES):
        inbox.add(piece)
        while (said := inbox.next()) is not None:
            if isinstance(said, float):
                start = said
            else:
                found |= said
    return Times(start, found)


def main() -> None:
    """Times what is asked."""
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_SECONDS, PATIENCE_SECONDS))
    inbox = Inbox()
    inbox.add(sys.stdin.buffer.read())
    asked, datasets = inbox.next()
    for content in datasets:
        remember(Dataset.from_bytes(content))
    import torch

    torch.set_num_threads(1)
    for name in {choose_engine(resolve(each.config)).name for each in asked}:
        engine_named(name).load()
    began = time.process_time()
    _say(began)
    for each in asked:
        if time.process_time() - began > MOST_SECONDS:
            break
        # One that cannot be trained is said to be so where it is launched.
        with suppress(SeqclsError, MemoryError, RuntimeError):
            timed = time_group(each)
            if timed is not None:
                _say({each.config.group_key: timed})


def _say(message: object) -> None:
    sys.stdout.buffer.write(packed(message))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
