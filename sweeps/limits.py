"""What the system lets a process have: too little is refused at once, in one line that names it.

Looked at before anything large is loaded, so this needs nothing but what comes with Python. Below
these limits libraries end the process themselves, with pages of their own or in a deadlock.
"""

import errno
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from types import ModuleType

from seqcls.errors import MachineError

UNAVAILABLE = 3
"""The exit status of a machine that cannot do it, as in `sweeps.cli.parameters`."""

FILES = 64
"""With so many every command does; it may also serve pages, if to one visitor."""

SERVED_FILES = 128
"""A browser opens dozens of connections to a page at once."""

GIBIBYTE = 2**30

ADDRESSES = GIBIBYTE
"""Bytes of address space for Python with NumPy and pandas."""

ADDRESSES_OF = {
    "torch": 3 * GIBIBYTE // 2,
    "streamlit": 3 * GIBIBYTE // 2,
    "vl_convert": 72 * GIBIBYTE,
}
"""Bytes of address space to load a library: the V8 in `vl_convert` reserves 64 GiB, uses little."""

NO_THREAD = ("can't start new thread", "thread creation failed", "pthread_create failed")
NO_MEMORY = ("failed to map segment", "cannot allocate memory", "out of memory")


def refuse_too_little() -> None:
    """Refuses to begin where the system lets this process have too little of anything.

    Raises:
        MachineError: it names the limit.
    """
    if (most := _raised_files()) is not None and most < FILES:
        raise MachineError(_of_files(most, FILES))
    most_bytes = _limit(resource.RLIMIT_AS)
    if most_bytes is None:
        return
    if most_bytes < ADDRESSES:
        raise MachineError(_of_addresses(most_bytes, ADDRESSES))
    sys.meta_path.insert(0, _Loading(most_bytes))


@contextmanager
def within_limits() -> Iterator[None]:
    """A block that ends the process with one line where one of the system's limits is in its way.

    The command has a handler of its own for what it knows; this is for what comes before it is
    loaded, and for libraries' errors.
    """
    try:
        refuse_too_little()
        yield
    except Exception as error:
        reason = str(error) if isinstance(error, MachineError) else limit_reached(error)
        if reason is None:
            raise
        sys.stderr.write(f"seqcls: {reason}\n")
        sys.exit(UNAVAILABLE)


def refuse_to_serve() -> None:
    """Refuses to serve pages where too few files can be open.

    Raises:
        MachineError: it names the limit.
    """
    if (most := _limit(resource.RLIMIT_NOFILE)) is not None and most < SERVED_FILES:
        raise MachineError(_of_files(most, SERVED_FILES))


def files_limit_reached() -> str | None:
    """That this process has as many files open as it may have; None where it can open more."""
    most = _limit(resource.RLIMIT_NOFILE)
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            is_reached = most is not None and len(os.listdir(folder)) > most - 4
        except OSError as error:
            is_reached = error.errno == errno.EMFILE
        if is_reached and most is not None:
            return _of_files(most, 2 * most)
    return None


def file_size() -> str | None:
    """That files may not grow beyond a size; None where they may."""
    return None if _limit(resource.RLIMIT_FSIZE) is None else _of_file_size()


def limit_reached(error: BaseException) -> str | None:
    """Which of the system's limits an error comes from, and what to do; None where from none."""
    for cause in _causes(error):
        text, number = str(cause).lower(), getattr(cause, "errno", None)
        if number in (errno.EMFILE, errno.ENFILE) or "too many open files" in text:
            most = _limit(resource.RLIMIT_NOFILE)
            return "too many files are open" if most is None else _of_files(most, 2 * most)
        if number == errno.EFBIG:
            return _of_file_size()
        if number == errno.EAGAIN or any(said in text for said in NO_THREAD):
            return (
                "this user may have no more processes and threads (ulimit -u); end others, or "
                "raise the limit"
            )
        if (
            isinstance(cause, MemoryError)
            or number == errno.ENOMEM
            or any(said in text for said in NO_MEMORY)
        ):
            most = _limit(resource.RLIMIT_AS)
            if most is not None:
                return _of_addresses(most, 2 * most)
            return "this machine has no memory left; end other programs, or give it more"
    return None


class _Loading:
    """Refuses to load libraries that would end the process where there is too little for them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Finds nothing: whoever comes next does."""
        needed = ADDRESSES_OF.get(name, 0)
        if self._most_bytes < needed:
            raise MachineError(_of_addresses(self._most_bytes, needed))
        return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _raised_files() -> int | None:
    """How many files may be open, after the limit was raised where this process may do so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < SERVED_FILES:
        wanted = SERVED_FILES if hard == resource.RLIM_INFINITY else min(hard, SERVED_FILES)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return _limit(resource.RLIMIT_NOFILE)


def _of_files(most: int, wanted: int) -> str:
    return (
        f"this process may have only {most:,} files open (ulimit -n); raise it to {wanted:,} or "
        "more"
    )


def _of_addresses(most: int, wanted: int) -> str:
    return (
        f"this process may have only {most / GIBIBYTE:.1f} GiB of addresses (ulimit -v); raise it "
        f"to {wanted / GIBIBYTE:g} GiB or more, or to unlimited"
    )


def _of_file_size() -> str:
    most = _limit(resource.RLIMIT_FSIZE)
    size = "" if most is None else f" {most:,} bytes"
    return f"a file may not grow beyond{size or ' a size'} (ulimit -f); raise it, or to unlimited"
