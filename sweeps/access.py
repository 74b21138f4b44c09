"""The default database, and read-only mode."""

import contextlib
import os
import shutil
from pathlib import Path

from platformdirs import user_data_path

from seqcls.errors import ConfigError, MachineError, ReadOnlyError
from sweeps.files import whole_files

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"
READ_ONLY_VARIABLE = "SEQCLS_READ_ONLY"
_OFF = ("", "0", "false", "no", "off")


def is_read_only() -> bool:
    """True if `SEQCLS_READ_ONLY` is set to anything but 0, false, no or off."""
    return not is_off(os.environ.get(READ_ONLY_VARIABLE, ""))


def is_off(value: str) -> bool:
    """True if a variable's value means no: it is empty, 0, false, no or off."""
    return value.strip().lower() in _OFF


def refuse_writes(what: str) -> None:
    """Raises ReadOnlyError if this process only reads.

    Args:
        what: the refused action.
    """
    if is_read_only():
        raise ReadOnlyError(
            f"{what} is refused: {READ_ONLY_VARIABLE} is set, so nothing is written; unset it"
        )


# The database of the report's models, which is part of an installed package.

SHIPPED = Path(__file__).with_name("shipped") / DEFAULT_DB
"""Its place in a wheel; a clone has it in its own folder, where it is found anyway."""

NONE_HERE = "There is no runs.db in this folder; using your copy of the report's models."


def to_begin_with(db: str | None) -> Path | None:
    """The user's own copy of the shipped database, created if missing.

    Returns:
        None if a database is named or in this folder, if none is shipped, or if no copy can be
        made.
    """
    # lexists, so that a broken link is reported and not replaced by the copy.
    if db or os.environ.get(DB_VARIABLE) or os.path.lexists(DEFAULT_DB) or not SHIPPED.is_file():
        return None
    place = user_data_path("seqcls") / DEFAULT_DB
    if not place.exists():
        # Moved into its place as a whole, since two processes may do this at the same time.
        with contextlib.suppress(ConfigError, MachineError), whole_files(place.parent) as new:
            shutil.copyfile(SHIPPED, new / DEFAULT_DB)
    return place if place.exists() else None
