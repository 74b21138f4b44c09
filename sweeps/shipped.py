"""The report's models, which an installed package brings: a database to begin with."""

import contextlib
import os
import shutil
from pathlib import Path

from platformdirs import user_data_path

from seqcls.errors import ConfigError, MachineError
from sweeps.files import whole_files
from sweeps.store.databases.default import DB_VARIABLE, DEFAULT_DB

SHIPPED = Path(__file__).with_name("shipped") / DEFAULT_DB
"""Where a wheel has it; a clone has it in its own folder, where it is found anyway."""

NONE_HERE = "There is no runs.db in this folder; using your copy of the report's models."


def to_begin_with(db: str | None) -> Path | None:
    """The user's own copy of the shipped database, created if missing.

    Args:
        db: the database that the user named, if any.

    Returns:
        None if a database is named or in this folder, if none is shipped, or if no copy can be
        made.
    """
    if db or os.environ.get(DB_VARIABLE) or os.path.lexists(DEFAULT_DB) or not SHIPPED.is_file():
        return None
    place = user_data_path("seqcls") / DEFAULT_DB
    if not place.exists():
        with contextlib.suppress(ConfigError, MachineError), whole_files(place.parent) as new:
            shutil.copyfile(SHIPPED, new / DEFAULT_DB)
    return place if place.exists() else None
