"""Databases, reports and sites that take long to make and are only read: stored between runs.

`stock("kinds")` is a folder; who changes what lies there copies it first (`copy_of`). It is made
once, whichever process asks first, and kept under a digest of all that makes it: of `seqcls` and
`sweeps`, of the shipped database, of the package of parts from outside, and of its maker's file
with all files of tests and benchmarks that it imports. So an edit of a page makes nothing anew.
"""

import hashlib
import importlib
import os
import re
import shutil
import sys
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

MAX_STORED_DIGESTS = 6
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
    made.update((ROOT / "runs.db").read_bytes())
    return made.hexdigest()


_IMPORT = re.compile(r"^(?:from|import) ((?:tests|benchmarks)[\w.]*)", re.MULTILINE)


def _sources(module: str, known: set[Path]) -> set[Path]:
    """Adds a module's file to those known, and those of tests and benchmarks that it imports."""
    base = ROOT / module.replace(".", "/")
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if path not in known:
        known.add(path)
        for inner in _IMPORT.findall(path.read_text()):
            _sources(inner, known)
    return known


def _folder(name: str, module: str) -> Path:
    made = hashlib.sha256(_digest_of_product().encode())
    for path in sorted(_sources(module, set())):
        made.update(path.read_bytes())
    return Path(sys.prefix) / "stock" / name / made.hexdigest()[:16]


@cache
def stock(name: str) -> Path:
    """The folder of a name, complete; whoever asks first makes it, all others wait."""
    module, _, function = MAKERS[name].partition(":")
    maker = getattr(importlib.import_module(module), function)
    folder = _folder(name, module)
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
    for left in older[MAX_STORED_DIGESTS:]:
        shutil.rmtree(left, ignore_errors=True)
    return folder


def copy_of(name: str, file: str, folder: Path) -> Path:
    """A copy of a file of the stock, in a folder of the test's own, to be changed there."""
    return Path(shutil.copy(stock(name) / file, folder / file))
