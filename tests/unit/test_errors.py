"""The error tree is drawn as it is."""

import inspect

import seqcls.errors
from seqcls.errors import SeqclsError


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
    assert classes
    assert all(issubclass(x, SeqclsError) for x in classes)
