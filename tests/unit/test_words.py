"""How the house speaks: a docstring is a sentence about the thing that it documents."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.conftest import ROOT

PACKAGES = ("seqcls", "sweeps", "dashboard", "benchmarks", "tests")
LEANING = re.compile(r"(Of|Or|Likewise)\b|As `")
"""What begins so is no sentence of its own: it leans on a name, or on what stands before it."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring, those of constants and fields among them."""
    for node in ast.walk(tree):
        statements = getattr(node, "body", None)
        if not isinstance(statements, list):
            continue
        documents = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for before, statement in pairwise([None, *statements]):
            if (before is None and documents) or isinstance(before, ast.Assign | ast.AnnAssign):
                match statement:
                    case ast.Expr(ast.Constant(value=str(text))):
                        yield statement.lineno, text


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_says_what_its_own_thing_is(package: str) -> None:
    leaning, count = [], 0
    for path in (ROOT / package).rglob("*.py"):
        for line, text in docstrings(ast.parse(path.read_text())):
            count += 1
            if LEANING.match(text):
                leaning.append(f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}")
    assert count > 20
    assert leaning == []


IMPORT = re.compile(r"\bfrom ((?:seqcls|sweeps|dashboard|tests)(?:\.\w+)*) import ([\w, ]+)")
"""Also where source stands in a text: what a test runs in another process, what docs show."""


def names_of(module: str) -> set[str] | None:
    """What can be imported from a module; None where there is no such module."""
    base = ROOT / module.replace(".", "/")
    path = next((x for x in (base.with_suffix(".py"), base / "__init__.py") if x.exists()), None)
    if path is None and not base.is_dir():
        return None
    below = {x.stem for x in base.glob("*") if x.is_dir() or x.suffix == ".py"}
    return below | set(re.findall(r"\w+", path.read_text()) if path else ())


@pytest.mark.parametrize("files", ["tests/**/*.py", "docs/*.md", "seqcls/**/*.py", "*.md"])
def test_what_a_text_imports_is_there(files: str) -> None:
    known: dict[str, set[str] | None] = {}
    missing = []
    for path in ROOT.glob(files):
        for module, names in IMPORT.findall(path.read_text()):
            known.setdefault(module, names_of(module))
            wanted = {name.split(" as ")[0].strip() for name in names.split(",")} - {""}
            if not wanted <= (known[module] or set()):
                missing.append(f"{path.relative_to(ROOT)}: from {module} import {names}")
    assert missing == []
