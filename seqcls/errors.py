"""Every error that a user can cause, as one tree.

    SeqclsError
    ├── ConfigError            a configuration that cannot be trained
    │   ├── HostError              an address at which a page may not be served
    │   └── PluginMissingError     its parts are of a plug-in that is not installed here
    ├── InvalidStringError     text that is no string of the alphabet
    ├── GroupError             runs that cannot train together
    ├── EngineError            an engine that is unknown or cannot train these models
    ├── DeviceError            a device that this machine does not have
    ├── MachineError           something without which this machine cannot train at the moment
    │   └── PluginError            a plug-in that cannot be imported (a ConfigError too)
    ├── SpecError              a sweep specification that cannot be read or is refused
    ├── DatasetError           a file of strings that cannot be read or is refused
    ├── PictureError           an uploaded file that is no image, or too large
    ├── ClusterError           a cluster that cannot be reached, or was lost
    ├── VisitorError           a question that a visitor of a read-only page cannot ask now
    └── StoreError             a database that cannot be used
        ├── StoreMissingError      there is none, or nothing in it yet
        ├── StoreVersionError      it was made by another version of seqcls
        ├── StoreDamagedError      it holds what this program never writes into it
        ├── StoreUnavailableError  it is full, gone or may not be written at the moment
        │   └── StoreBusyError     it is locked, or its server does not answer; waiting may help
        │       └── StoreLostError     its server ended a transaction, of which nothing was stored
        ├── UnknownRunError        it holds no such run, sweep or checkpoint
        └── ReadOnlyError          something would be written by a process that only reads

Each message is one line that names the value, what was expected and what to do. Programs may
catch `SeqclsError`; the command line prints its message and exits with status 2, or with 3 for
what is no mistake of the user's but may be over later (ClusterError, MachineError,
StoreUnavailableError).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

MAX_MESSAGE = 500
"""Most characters of a foreign text, such as a plug-in's exception, in messages and databases."""


class Parameter(NamedTuple):
    """A parameter that a message names, with the value that it has or should have, if any.

    Its text is that of Python, `sort='size'`. An interface with other names, such as a command with
    options, replaces it by `SeqclsError.render`.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r:.60}"


class SeqclsError(Exception):
    """The root of the tree; its message is a text, or pieces of one, each a text or a parameter."""

    def __str__(self) -> str:
        return self.render(str)

    def render(self, name: Callable[[Parameter], str]) -> str:
        """Renders the message with the names that `name` gives to parameters."""
        # The pieces are the arguments of the exception, so that it can be pickled and copied.
        return "".join(name(x) if isinstance(x, Parameter) else str(x) for x in self.args)


class ConfigError(SeqclsError):
    """A configuration that cannot be trained."""


class HostError(ConfigError):
    """No address of this machine, or one that others reach while a page can write."""


class PluginMissingError(ConfigError):
    """Parts of a plug-in that is not installed here, or not in the version that is recorded."""


class InvalidStringError(SeqclsError):
    """Text that is no string of the alphabet."""


class GroupError(SeqclsError):
    """Runs that cannot train together."""


class EngineError(SeqclsError):
    """An engine that is unknown or cannot train these models."""


class DeviceError(SeqclsError):
    """A device that this machine does not have."""


class MachineError(SeqclsError):
    """Processes that do not start, a plug-in that cannot be imported, no room for machine code.

    No run is to blame, and none is charged with it.
    """


class PluginError(ConfigError, MachineError):
    """A plug-in that cannot be imported."""


class SpecError(SeqclsError):
    """A sweep specification that cannot be read or is refused."""


class DatasetError(SeqclsError):
    """A file of strings that cannot be read or is refused."""


class PictureError(SeqclsError):
    """An uploaded file that is no image, or too large."""


class ClusterError(SeqclsError):
    """A cluster that cannot be reached, or was lost."""


class VisitorError(SeqclsError):
    """A visitor of a read-only page has used up the compute budget, or must wait."""


class StoreError(SeqclsError):
    """A database that cannot be used."""


class StoreMissingError(StoreError):
    """There is no database, or nothing in it yet; which command makes one."""

    def __init__(self, message: str, *, command: str = "") -> None:
        super().__init__(message)
        self.command = command


class StoreVersionError(StoreError):
    """The database was made by another version of seqcls."""


class StoreDamagedError(StoreError):
    """The database holds what this program never writes into it."""


class StoreUnavailableError(StoreError):
    """The database is full, gone or may not be written at the moment."""


class StoreBusyError(StoreUnavailableError):
    """The database is locked, or its server does not answer; waiting may help."""


class StoreLostError(StoreBusyError):
    """The connection to a server was lost within a transaction, of which nothing was stored."""


class UnknownRunError(StoreError):
    """The database holds no such run, sweep or checkpoint."""


class ReadOnlyError(StoreError):
    """Something would be written or started by a dashboard that only reads."""


def describe_error(error: BaseException) -> str:
    """Describes an error in one line that can be printed and stored, whatever its text."""
    try:
        # The text of a foreign exception may raise another one.
        message = str(error)
    except Exception:
        message = "of which nothing can be said"
    return in_short(f"{type(error).__name__}: {message}")


def in_short(text: str) -> str:
    """Shortens a text to one line of `MAX_MESSAGE` characters that every database can hold."""
    # Cut before it is split, since it may have megabytes; PostgreSQL takes no text with a NUL.
    line = " ".join(text[: 10 * MAX_MESSAGE].split()).replace("\0", "\\0")
    line = line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"
    # Surrogates without a partner are no UTF-8.
    return line.encode("utf-8", "backslashreplace").decode()
