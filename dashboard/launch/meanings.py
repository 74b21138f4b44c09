"""A line for each setting: the first sentence of its docstring in `RunConfig`."""

import ast
import inspect
import re
from functools import cache
from itertools import pairwise

from seqcls import config

OF_PARTS = {
    "sampler": "How {} strings are drawn.",
    "max_length": "Tokens of the longest {} string.",
    "min_length": "Tokens of the shortest {} string.",
    "alpha": "How evenly letters are mixed in {} strings; if small, one letter dominates.",
    "size": "Number of {} strings; in each epoch, where they are drawn anew.",
    "batch_size": "Strings in a {} batch.",
    "seed": "Seed of the generator that draws {} strings.",
}
"""Meanings of the fields that training, validation and test each have."""

PARTS = {"train": "training", "validation": "validation", "test": "test"}


@cache
def meanings() -> dict[str, str]:
    """What each field of a configuration is, by name."""
    texts = {
        f"{part}_{name}": _capital(text.format(strings))
        for part, strings in PARTS.items()
        for name, text in OF_PARTS.items()
    }
    for made in ast.parse(inspect.getsource(config)).body:
        if not isinstance(made, ast.ClassDef) or made.name not in ("_NetworkFields", "RunConfig"):
            continue
        for before, after in pairwise(made.body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = _first_sentence(text)
    return texts


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]
