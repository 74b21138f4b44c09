"""A model as one PyTorch file that needs nothing of this package.

The file is the files of `seqcls.models` that a network leans on, as they stand, one after another,
each after those that it leans on; then `seqcls/given.py`, which loads the model and asks it. What
they import of the rest of this package says which networks there are and what fits them; of that
the file has what little the network computes with (`_stand_in`).
"""

import ast
import importlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.positions import POSITIONS, table_size

_ROOM = "seqcls.models."

_REGISTRIES = {"seqcls.models.positions", "seqcls.models.entries", "seqcls.models.architectures"}
"""Modules of the room that say what there is, and compute nothing."""

_HEAD = '''"""A model that seqcls gave away, as one file: it needs torch, numpy and safetensors alone.

    python model.py STRING...

says what the model answers; `load()` gives the model, `logits` and `write` ask it.
"""

from __future__ import annotations

'''

_STAND_INS = '''
class Shaped:
    """What stands for the types of arrays, which say their shapes to readers alone."""

    def __class_getitem__(cls, shape):
        return cls


Bool = Float = Int64 = Integer = UInt8 = Shaped


class Part:
    """A part by the name of its class in this file."""

    def __init__(self, name):
        self.name = name

    def load(self):
        return globals()[self.name]

    load_mixer = load


POSITIONS = {positions}
MODELS = {mixers}


def architecture_of_letter(letter):
    return letter


def table_size(config):
    return {table_size}


def separator_id(config):
    return config.vocabulary_size - 2
'''


class _File(NamedTuple):
    """A file of the room, without what it imports."""

    text: str
    defined: dict[str, str]
    """What it defines, by name, as it stands there; types of arrays left out."""
    leans_on: Sequence[str]
    """Files of the room, in the order in which it imports them."""
    outside: dict[str, object]
    """What it imports of the rest of this package, by name."""
    imports: dict[str, dict[str, None]]
    """What it imports of other packages: the names of each; of a module itself `import` and how."""


def source_of(network: NetworkConfig) -> tuple[str, str]:
    """The program text of the files that a network's class leans on, and the name of that class.

    Raises:
        ConfigError: it reads what only its task knows, or two of its files define one name.
    """
    for setting in ("coupling", "picture"):
        if getattr(network, setting):
            raise ConfigError(
                f"a model of its own file: the task says what this network reads ({setting}), and "
                "a file without the task cannot; expected one that reads tokens at their own places"
            )
    model, positions = MODELS[network.architecture].load(), POSITIONS[network.positions].load()
    mixers = {x: MODELS[architecture_of_letter(x)].load_mixer() for x in network.layers}
    files: dict[str, _File] = {}
    for part in (positions, *mixers.values(), model):
        _add_files(part.__module__, files)
    files["seqcls.given"] = _file("seqcls.given")
    _check_names(files)
    stand_ins = _STAND_INS.format(
        positions=_listed({network.positions: positions}),
        mixers=_listed(mixers),
        table_size=table_size(network),
    )
    outside = {x: y for file in files.values() for x, y in file.outside.items()}
    known = {x.name for x in ast.walk(ast.parse(stand_ins)) if isinstance(x, ast.FunctionDef)}
    known |= {"POSITIONS", "MODELS"}
    said = [_stand_in(x, y) for x, y in outside.items() if x not in known]
    *texts, asked = (file.text for file in files.values())
    parts = [
        *_import_lines(files),
        "",
        *said,
        stand_ins,
        *texts,
        f"MODEL = {model.__name__}\n",
        asked,
    ]
    return _HEAD + "\n".join(parts), model.__name__


def _listed(parts: Mapping[str, type]) -> str:
    return f"{{{', '.join(f'{x!r}: Part({y.__name__!r})' for x, y in parts.items())}}}"


def _add_files(name: str, files: dict[str, _File]) -> None:
    """Adds the files of a module, each after those that it leans on."""
    if name in files:
        return
    file = _file(name)
    for other in file.leans_on:
        _add_files(other, files)
    files[name] = file


@cache
def _file(name: str) -> _File:
    module = importlib.import_module(name)
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    lines, leans_on = text.split("\n"), dict[str, None]()
    outside, imports = dict[str, object](), dict[str, dict[str, None]]()
    defined = dict[str, str]()
    for node in ast.walk(tree := ast.parse(text)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        origin = node.module if isinstance(node, ast.ImportFrom) else None
        if origin is not None and _is_in_room(origin, name):
            leans_on[origin] = None
        elif origin is not None and origin.partition(".")[0] == "seqcls":
            outside |= {
                x.name: getattr(importlib.import_module(origin), x.name) for x in node.names
            }
        elif node in tree.body and origin not in ("jaxtyping", "__future__"):
            names = imports.setdefault(origin or "", {})
            names |= dict.fromkeys(ast.unparse(x) for x in node.names)
        if node in tree.body or (origin is not None and origin.startswith("seqcls")):
            for line in range(node.lineno - 1, node.end_lineno or node.lineno):
                # A block that imports for a type checker alone stays one.
                lines[line] = "" if node in tree.body else " " * node.col_offset + "pass"
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            defined[statement.name] = ast.unparse(statement)
        elif isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Subscript):
            defined |= {ast.unparse(x): ast.unparse(statement) for x in statement.targets}
    return _File("\n".join(lines).strip() + "\n", defined, [*leans_on], outside, imports)


def _is_in_room(module: str, of: str) -> bool:
    """Whether a file has a module's text: one of a network, or of the package of the plug-in."""
    if module in _REGISTRIES:
        return False
    package = of.partition(".")[0]
    return module.startswith(_ROOM) or (package != "seqcls" and module.startswith(package))


def _check_names(files: dict[str, _File]) -> None:
    known: dict[str, str] = {}
    for file in files.values():
        for name, text in file.defined.items():
            if known.setdefault(name, text) != text:
                raise ConfigError(f"a model of its own file: two of its parts are called {name!r}")


def _stand_in(name: str, value: object) -> str:
    """What stands for a part of the package of which nothing is computed; a number is itself."""
    if inspect.isclass(value):
        return f"class {name}:\n    pass\n\n"
    if isinstance(value, frozenset):
        return f"{name} = frozenset({sorted(value)!r})"
    is_plain = isinstance(value, int | float | str | tuple)
    return f"{name} = {value!r}" if is_plain else f"{name} = None"


def _import_lines(files: dict[str, _File]) -> Iterator[str]:
    imports: dict[str, dict[str, None]] = {"": {}}
    for file in files.values():
        for module, names in file.imports.items():
            imports[module] = imports.get(module, {}) | names
    yield from (f"import {name}" for name in sorted(imports.pop("")))
    for module, names in sorted(imports.items()):
        yield f"from {module} import {', '.join(sorted(names))}"


def network_json(network: NetworkConfig) -> dict[str, Any]:
    """The settings that the file reads."""
    settings: dict[str, Any] = json.loads(network.model_dump_json())
    properties = ("has_norms", "vocabulary_size", "writes")
    return {**settings, **{name: getattr(network, name) for name in properties}}


_DRAWN = {x for x in NetworkConfig.model_fields if x.endswith("_init_strategy")}
"""Settings of what weights are before training."""


def network_said(network: NetworkConfig) -> dict[str, Any]:
    """The settings that say what a network computes, by name: those that its architecture reads."""
    reads = {*MODELS[network.architecture].reads, "precision"} - _DRAWN
    settings = {"architecture": network.architecture, "hidden_size": network.hidden_size}
    others = {name: x for name, x in network.model_dump().items() if name in reads}
    return settings | {name: x for name, x in others.items() if x not in (0, "", ()) or x is False}
