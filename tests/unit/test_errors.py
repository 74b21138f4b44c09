"""The error tree is drawn as it is."""

import ast
import inspect
import pickle
import re

import seqcls.errors
from seqcls.errors import ConfigError, Parameter, SeqclsError
from sweeps.cli.parameters import option
from tests.conftest import ROOT


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = []
    for line in (seqcls.errors.__doc__ or "").splitlines():
        if "──" in line:
            mark = max(line.find("├"), line.find("└"))
            drawn.append(((mark - 4) // 4 + 1, line[mark:].strip("├└─ ").split()[0]))

    def walk(error: type[Exception], depth: int) -> list[tuple[int, str]]:
        # One that is an error of two kinds is drawn once, under the one that decides the status.
        own = [child for child in error.__subclasses__() if child.__bases__[-1] is error]
        below = [pair for child in own for pair in walk(child, depth + 1)]
        return [(depth, error.__name__), *below]

    assert drawn == walk(SeqclsError, 0)[1:]


def test_every_error_of_the_module_is_in_the_tree() -> None:
    classes = [x for _, x in inspect.getmembers(seqcls.errors, inspect.isclass)]
    errors = [x for x in classes if issubclass(x, BaseException)]
    assert errors
    assert all(issubclass(x, SeqclsError) for x in errors)


def test_an_error_names_a_parameter_as_each_surface_writes_it() -> None:
    error = ConfigError("expected no ", Parameter("sort", "size"), ", or ", Parameter("force"))
    assert str(error) == "expected no sort='size', or force"
    assert error.render(option) == "expected no --sort size, or --force"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_no_error_of_the_science_or_the_book_keeping_names_an_option() -> None:
    """Notebooks and pages have none; a whole command, in backticks, may be named."""
    for folder in ("seqcls", "sweeps"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            # These are about the command line alone.
            if file.is_relative_to(ROOT / "sweeps/cli") or file.name in ("serve.py", "terminal.py"):
                continue
            constants = [
                x.value
                for x in ast.walk(ast.parse(file.read_text()))
                if isinstance(x, ast.Constant)
            ]
            texts = [x for x in constants if isinstance(x, str)]
            named = [
                x
                for x in texts
                if re.search(r"(?<![\w-])--(?!db\b)[a-z]", re.sub(r"`[^`]*(`|$)", "", x))
            ]
            assert not named, file
