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


PARTICIPLE = re.compile(
    r"(?!(excee|fee|nee|procee|see|succee)d$|embed$)(\w*ed|(for|be)?given|(re)?(built|drawn|made"
    r"|sent|told|wound|written)|begun|bought|bound|broken|brought|caught|chosen|dealt|done|driven"
    r"|felt|frozen|gone|grown|held|hidden|kept|known|laid|learnt|led|left|lent|lost|meant|met|paid"
    r"|said|seen|shown|sold|sought|spent|spoken|stood|taken|taught|thought|thrown|understood|won"
    r"|worn|woven)"
)
"""Without those that are infinitives too, as `put` and `split`."""
PARTICIPLES = 8
"""Functions that are still named by one; none may be added."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_functions_are_verbs() -> None:
    """A participle alone says what came out, and not what is done: `drawn` of `draw`.

    Properties may be one, since they are what an object has or is, and decorators, which are said
    of what stands below them, as `functools.cached_property` is.
    """
    paths = [x for package in PACKAGES[:3] for x in (ROOT / package).rglob("*.py")]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    decorators = {
        name.id if isinstance(name, ast.Name) else name.attr
        for tree in trees.values()
        for function in functions(tree)
        for decorator in function.decorator_list
        for name in [decorator.func if isinstance(decorator, ast.Call) else decorator]
        if isinstance(name, ast.Name | ast.Attribute)
    }
    found = []
    for path, tree in trees.items():
        for function in functions(tree):
            name = function.name.strip("_")
            above = {ast.unparse(x).rpartition(".")[2] for x in function.decorator_list}
            if (
                PARTICIPLE.fullmatch(name)
                and "_" not in name
                and function.name not in decorators
                and not above & {"property", "cached_property"}
            ):
                found.append(f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}")
    assert len(found) <= PARTICIPLES, "\n".join(["functions are verbs:", *found])
