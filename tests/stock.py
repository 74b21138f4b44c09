"""What takes long to make and is only read: databases, reports, sites, kept from run to run.

`stock("kinds")` is a folder; who changes what lies there copies it first (`copy_of`). It is made
once, whichever process asks first, and kept under a digest of all that makes it: of `seqcls` and
`sweeps`, of the package of parts from outside, of its own maker's file. So an edit of a page or
of a test makes nothing anew.
"""

import hashlib
import importlib
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import FileLock

from tests.conftest import ASSETS, ROOT

MAKERS = {
    "made": "tests.world:make_empty",
    "kinds": "tests.world:make_kinds",
    "report": "tests.world:make_report",
    "compared": "tests.chaos.filled:make_compared",
    "trained": "tests.pages.trained:make_trained",
    "states": "tests.pages.stock:make_states",
    "inside": "tests.inside:make_inside",
    "proofs": "tests.store.proofs:make",
    "shortcuts": "tests.store.shortcuts:make",
    "commands": "tests.chaos.interrupted:prepare",
    "rows": "tests.chaos.damaged:make",
}
"""The function that fills the folder of a name, which it is given."""

KEPT = 6
"""Digests whose stock is kept: other checkouts may use the same environment."""

COMPLETE = ".complete"
"""A file that stands in a folder once all of it is made."""


@cache
def _digest_of_product() -> str:
    made = hashlib.sha256(sys.version.encode())
    for folder in (ROOT / "seqcls", ROOT / "sweeps", ASSETS / "plugin_package"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                made.update(path.relative_to(folder).as_posix().encode())
                made.update(path.read_bytes())
    return made.hexdigest()


def _folder(name: str, maker: Callable[[Path], None]) -> Path:
    own = Path(inspect.getsourcefile(maker) or "").read_bytes()
    digest = hashlib.sha256(_digest_of_product().encode() + own).hexdigest()[:16]
    return Path(sys.prefix) / "stock" / name / digest


@cache
def stock(name: str) -> Path:
    """The folder of a name, complete; whoever asks first makes it, all others wait."""
    module, _, function = MAKERS[name].partition(":")
    maker = getattr(importlib.import_module(module), function)
    folder = _folder(name, maker)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            maker(folder)
            (folder / COMPLETE).touch()
    os.utime(folder)
    older = sorted(
        (x for x in folder.parent.iterdir() if x.is_dir()), key=lambda x: -x.stat().st_mtime
    )
    for left in older[KEPT:]:
        shutil.rmtree(left, ignore_errors=True)
    return folder


def copy_of(name: str, file: str, folder: Path) -> Path:
    """A copy of a file of the stock, in a folder of the test's own, to be changed there."""
    return Path(shutil.copy(stock(name) / file, folder / file))
