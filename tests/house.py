"""Checks of `make lint` that no general tool has.

python -m tests.house
"""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
LAYERS = ("seqcls", "sweeps", "dashboard")
"""From the lowest to the highest: imports go downwards only."""


@cache
def read(path: Path) -> tuple[str, ast.Module]:
    """The source of a module and what it parses to, once however many checks look at it."""
    text = path.read_text()
    return text, ast.parse(text)


def modules(*packages: str) -> Iterator[tuple[Path, str, ast.Module]]:
    """Every module of some packages, by its path from the root."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), *read(path)


LEANING = re.compile(r"(How|Likewise|Of|Or|That|What|Where|Whether|Which|Who|Whose)\b|As `")
"""Beginnings of docstrings that are no sentence: they depend on a name or on the text before."""


def check_docstrings() -> Iterator[str]:
    """A docstring is a sentence about the thing that it documents."""
    for path, _, tree in modules(*LAYERS, "benchmarks", "tests"):
        for line, text in docstrings(tree):
            if LEANING.match(text):
                yield f"{path}:{line}: {text.splitlines()[0]}"


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


IMPORT = re.compile(r"\bfrom ((?:seqcls|sweeps|dashboard|tests)(?:\.\w+)*) import ([\w, ]+)")
"""Imports, also those in texts: in source that a test runs in another process, and in docs."""


def check_imports_in_texts() -> Iterator[str]:
    """Every name that a text imports exists."""
    texts = [path for pattern in ("docs/*.md", "*.md") for path in ROOT.glob(pattern)]
    texts += [ROOT / path for path, _, _ in modules("tests", "seqcls")]
    for path in texts:
        for module, names in IMPORT.findall(path.read_text()):
            imported = {name.split(" as ")[0].strip() for name in names.split(",")} - {""}
            if not imported <= names_of(module):
                yield f"{path.relative_to(ROOT)}: from {module} import {names}"


@cache
def names_of(module: str) -> set[str]:
    """Names that may be imported from a module: every word in it, and the modules below it."""
    base = ROOT / module.replace(".", "/")
    path = next((x for x in (base.with_suffix(".py"), base / "__init__.py") if x.exists()), None)
    below = {x.stem for x in base.glob("*") if x.is_dir() or x.suffix == ".py"}
    return below | set(re.findall(r"\w+", path.read_text()) if path else ())


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


def check_verbs() -> Iterator[str]:
    """Functions are verbs and not participles; properties and decorators may be one."""
    functions = [
        (path, node)
        for path, _, tree in modules(*LAYERS)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    above = {id(node): {last_name(x) for x in node.decorator_list} for _, node in functions}
    decorators = set().union(*above.values())
    found = [
        f"{path}:{node.lineno}: {node.name}"
        for path, node in functions
        if PARTICIPLE.fullmatch(node.name.strip("_"))
        and "_" not in node.name.strip("_")
        and node.name not in decorators
        and not above[id(node)] & {"property", "cached_property"}
    ]
    if len(found) > PARTICIPLES:
        yield from found


def last_name(expression: ast.expr) -> str | None:
    """The last name of what is called or named: `b` of `a.b` and of `a.b()`."""
    match expression:
        case ast.Call(func=function):
            return last_name(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return None


OPTION = re.compile(r"(?<![\w-])--(?!db\b)[a-z]")


def check_errors_name_no_option() -> Iterator[str]:
    """Notebooks and pages have no options; a whole command, in backticks, may be named."""
    for path, _, tree in modules("seqcls", "sweeps"):
        # These are about the command line alone.
        if path.is_relative_to("sweeps/cli") or path.name in ("serve.py", "terminal.py"):
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str(text)):
                    if OPTION.search(re.sub(r"`[^`]*(`|$)", "", text)):
                        yield f"{path}:{node.lineno}: {text[:80]!r}"


def check_packages_are_declared() -> Iterator[str]:
    """Every package that is imported is one that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dask"], *extras["mcp"], *extras["postgres"]]
    declared = {re.split(r"[^\w-]", line)[0].replace("-", "_").lower() for line in lines}
    distributions = packages_distributions()
    for path, _, tree in modules(*LAYERS):
        for package in {name.partition(".")[0] for name in imports_of(tree)}:
            if package in LAYERS or package in sys.stdlib_module_names:
                continue
            named = {name.replace("-", "_").lower() for name in distributions[package]}
            if not named & declared:
                yield f"{path}: {package} is imported and not declared"


def imports_of(tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports: within functions too, and by `import_module` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and last_name(node) in ("import_module", "__import__"):
            named = [node.args[0]] if node.args else [x.value for x in node.keywords]
            for part in (part for value in named for part in ast.walk(value)):
                match part:
                    case ast.Constant(value=str(text)):
                        yield text


def check_imports_go_downwards() -> Iterator[str]:
    """Imports go to lower layers only, within functions and by name too."""
    for height, package in enumerate(LAYERS):
        for path, _, tree in modules(package):
            above = LAYERS[height + 1 :]
            if package == "sweeps" and not {"cli", "__main__.py"} & {*path.parts}:
                # The command formats what the others answer.
                above = ("sweeps.cli", *above)
            for name in imports_of(tree):
                if f"{name}.".startswith(tuple(f"{x}." for x in above)):
                    yield f"{path}: imports {name}"
    for path, _, tree in modules("benchmarks"):
        if any(name.startswith("tests.") for name in imports_of(tree)):
            yield f"{path}: what measures needs no tests"


OLD_WORD = re.compile(
    r"_*((?i:asked|each|its|kept|lessons?|of|rooms|said|taught|told|waits|wanted)"
    r"|FEW|LEAST|MANY|MOST|PARTS|PLACES|SOME"
    r"|(Asked|Kept|Lesson|Of|Rooms|Said|Taught|Told)[A-Z]\w*)_*"
)
"""Names without a meaning, alone or as the first word of a class."""
PUBLIC_NAMES = frozenset(
    {
        ("seqcls/interpretability/automaton.py", "asked"),
        ("sweeps/results.py", "said"),
        ("dashboard/section.py", "of"),
    }
)
"""Modules, and such names in them that users know: they stay as they are."""


def check_words() -> Iterator[str]:
    """Names are words of the field or of Python: `message`, `targets` or `cached`, not `said`."""
    for path, _, tree in modules(*LAYERS, "benchmarks", "tests"):
        for line, name in bound_names(tree):
            if OLD_WORD.fullmatch(name) and (path.as_posix(), name) not in PUBLIC_NAMES:
                yield f"{path}:{line}: {name}"


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of whatever a module gives a name to."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=str(name))
                | ast.AsyncFunctionDef(name=str(name))
                | ast.ClassDef(name=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
                | ast.alias(asname=str(name))
                | ast.arg(arg=str(name))
                | ast.Name(id=str(name), ctx=ast.Store())
                | ast.Attribute(attr=str(name), ctx=ast.Store())
            ):
                yield node.lineno, name


ASKS = re.compile(r"\.(writes|no_language)\b(?!\.)")
MAX_QUESTIONS_OF_KIND = 12
"""Places that may depend on whether models write outputs; elsewhere the kind decides."""


def check_kinds_are_asked() -> Iterator[str]:
    """Few places depend on whether models write outputs, each with a comment before it."""
    places = [
        (f"{path}:{number}: {line.strip()}", lines[number - 2].strip())
        for path, text, _ in modules(*LAYERS)
        # Kinds define it, and networks define what their heads write.
        if not re.match("seqcls/(kinds|models|adapters)", path.as_posix())
        for lines in [text.splitlines()]
        for number, line in enumerate(lines, 1)
        if ASKS.search(line) and "import" not in line and "`" not in line and "fields." not in line
    ]
    yield from (place for place, before in places if not before.startswith(("#", '"""')))
    if len(places) > MAX_QUESTIONS_OF_KIND:
        yield from (place for place, _ in places)


def check_nothing_is_hidden() -> Iterator[str]:
    """Streamlit puts the folder of its script first on the path: there `dashboard/x` is `x`."""
    folder = ROOT / "dashboard"
    parts = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    hidden = {"seqcls", "sweeps", *sys.stdlib_module_names, *packages_distributions()}
    for part in parts & hidden - {"__init__", "__pycache__"}:
        yield f"dashboard/{part} hides the package {part}"


def check_powers_are_tested() -> Iterator[str]:
    """Every test that the table of powers names is there."""
    tests = {
        node.name
        for _, _, tree in modules("tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    page = (ROOT / "tests" / "README.md").read_text()
    for name in re.findall(r"`(test_\w+)`", page):
        if name not in tests:
            yield f"tests/README.md: {name} is no test"


def check_versions_agree() -> Iterator[str]:
    """The version and the supported Pythons are the same everywhere; nothing is pinned twice."""
    version = re.search(r'__version__ = "(.*)"', (ROOT / "seqcls" / "__init__.py").read_text())
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    if not version or not newest or {newest[1], cited} != {version[1]}:
        yield f"versions: seqcls {version}, CHANGELOG {newest}, CITATION {cited}"
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    tested = flow["jobs"]["test"]["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [x.rpartition(" ")[2] for x in project["classifiers"]]
    if [x for x in named if x.startswith("3.")] != tested:
        yield f"pyproject.toml names other versions of Python than CI tests: {tested}"
    if project["requires-python"] != f">={tested[0]}":
        yield f"requires-python is {project['requires-python']}, CI tests {tested}"
    pinned = [x.partition("==")[0].lower() for x in (ROOT / "constraints.txt").open()][1:]
    yield from (f"constraints.txt pins {x} twice" for x in {*pinned} if pinned.count(x) > 1)


CHECKS: tuple[Callable[[], Iterator[str]], ...] = (
    check_docstrings,
    check_imports_in_texts,
    check_verbs,
    check_errors_name_no_option,
    check_packages_are_declared,
    check_imports_go_downwards,
    check_words,
    check_kinds_are_asked,
    check_nothing_is_hidden,
    check_powers_are_tested,
    check_versions_agree,
)


def main() -> int:
    """Prints violations by check; returns 1 if there are any."""
    status = 0
    for check in CHECKS:
        for found in check():
            print(f"{check.__name__}: {found}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
