"""A model as one PyTorch file that needs nothing of this package.

The file is the files of `seqcls.models` that a network leans on, as they stand, one after another,
each after those that it leans on; then `seqcls/given.py`, which loads the model and asks it. Of
what they import of the rest of this package (which networks there are, what fits them, what is
drawn of them), the file has what little the network computes with (`_STAND_INS`, `_stand_in`).
"""

import ast
import importlib
import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.positions import POSITIONS, table_size

_MODELS = "seqcls.models"

_COMPUTES_NOTHING = {
    f"{_MODELS}.{x}" for x in ("positions", "architectures", "memories", "parts", "pictures")
}
"""Files beside the models that say what there is. Networks that see pictures are not given."""

_HEAD = '''"""A model that seqcls gave away, as one file: it needs torch, numpy and safetensors.

    python model.py STRING...

says what the model answers; `load()` gives the model, `logits` and `write` ask it.
"""

from __future__ import annotations

{imports}

{stand_ins}


class Shaped:
    """What stands for the types of arrays, which say their shapes to readers alone."""

    def __class_getitem__(cls, shape):
        return cls


Bool = Float = Int64 = Integer = UInt8 = Shaped


class Named:
    """A part of the network by the name of its class in this file."""

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

_IN_HEAD = {
    x.name for x in ast.parse(_HEAD.split("{stand_ins}")[1]).body if hasattr(x, "name")
} | {"POSITIONS", "MODELS"}  # fmt: skip


class _File(NamedTuple):
    """A file without what it imports."""

    text: str
    defined: Mapping[str, str]
    """What it defines, by name, as it stands there; types of arrays left out."""
    leans_on: Mapping[str, None]
    """Files that stand before it."""
    outside: Mapping[str, object]
    """What it imports of the rest of this package, by name."""
    imports: Mapping[str, None]
    """What it imports of other packages, an import each."""


def source_of(network: NetworkConfig) -> tuple[str, str]:
    """The program text of a network's file, and the name of the network's class in it.

    Raises:
        ConfigError: it reads what only its task knows, or two of its files define one name.
    """
    for setting in ("coupling", "picture"):
        if getattr(network, setting):
            raise ConfigError(
                f"a model of its own file: the task says what this network reads ({setting}), and "
                "a file without the task cannot; expected one that reads tokens at their own places"
            )
    model = MODELS[network.architecture].load()
    mixers = {x: MODELS[architecture_of_letter(x)].load_mixer() for x in network.layers}
    positions = {}
    if "positions" in MODELS[network.architecture].reads:
        positions[network.positions] = POSITIONS[network.positions].load()
    files: dict[str, _File] = {}
    for part in (*positions.values(), *mixers.values(), model):
        _add_file(part.__module__, files)
    # It comes last, as it calls what the others define.
    files["seqcls.given"] = _file("seqcls.given")
    defined = dict.fromkeys(_IN_HEAD, "")
    for name, text in (row for file in files.values() for row in file.defined.items()):
        # Of two definitions that are the same, the later one changes nothing.
        if defined.setdefault(name, text) != text:
            raise ConfigError(f"a model of its own file: two of its parts are called {name!r}")
    outside = {x: y for file in files.values() for x, y in file.outside.items()}
    head = _HEAD.format(
        imports="\n".join(sorted({x: None for file in files.values() for x in file.imports})),
        stand_ins="\n".join(_stand_in(x, y) for x, y in outside.items() if x not in _IN_HEAD),
        positions=_list(positions),
        mixers=_list(mixers),
        table_size=table_size(network),
    )
    *texts, loader = (file.text for file in files.values())
    return head + "\n\n".join([*texts, f"MODEL = {model.__name__}\n", loader]), model.__name__


def _list(parts: Mapping[str, type]) -> str:
    return f"{{{', '.join(f'{x!r}: Named({y.__name__!r})' for x, y in parts.items())}}}"


def _add_file(module: str, files: dict[str, _File]) -> None:
    """Adds a module's file after those that it leans on."""
    if module not in files:
        for other in _file(module).leans_on:
            _add_file(other, files)
        files[module] = _file(module)


@cache
def _file(module: str) -> _File:
    text = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")
    lines, tree = text.split("\n"), ast.parse(text)
    leans_on, outside, imports = dict[str, None](), dict[str, object](), dict[str, None]()
    defined = dict[str, str]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined[node.name] = ast.unparse(node)
        elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Subscript):
            defined |= {ast.unparse(x): ast.unparse(node) for x in node.targets}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            # Lines are emptied and not removed, since the numbers of those after them are still
            # needed.
            for line in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[line] = ""
            origin = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if _is_file(origin, module):
                leans_on[origin] = None
            elif origin.partition(".")[0] == "seqcls":
                # The values are needed, since constants are written out.
                theirs = importlib.import_module(origin)
                outside |= {x.name: getattr(theirs, x.name) for x in node.names}
            elif origin not in ("__future__", "jaxtyping"):
                names = map(ast.unparse, node.names)
                before = f"from {origin} import" if origin else "import"
                imports |= {f"{before} {name}": None for name in names}
    # Where imports stood, gaps are closed.
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip()
    return _File(text + "\n", defined, leans_on, outside, imports)


def _is_file(module: str, importer: str) -> bool:
    """Whether a module is a file of a network, or of the package of a plug-in."""
    package = importer.partition(".")[0]
    if package != "seqcls" and module.partition(".")[0] == package:
        return True
    return module.startswith(f"{_MODELS}.") and module not in _COMPUTES_NOTHING


def _stand_in(name: str, value: object) -> str:
    """What stands for a part of this package with which nothing is computed, or a constant."""
    if inspect.isclass(value):
        return f"\n\nclass {name}:\n    pass\n"
    if isinstance(value, frozenset):
        return f"{name} = frozenset({sorted(value)!r})"
    is_plain = isinstance(value, int | float | str | tuple | dict)
    return f"{name} = {value!r}" if is_plain else f"{name} = None"


def network_json(network: NetworkConfig) -> dict[str, Any]:
    """The settings that the file reads."""
    settings: dict[str, Any] = json.loads(network.model_dump_json())
    properties = ("has_norms", "vocabulary_size", "writes")
    return {**settings, **{name: getattr(network, name) for name in properties}}


_DRAWN = {x for x in NetworkConfig.model_fields if x.endswith("_init_strategy")}
"""Settings of what weights are before training."""


def network_settings(network: NetworkConfig) -> dict[str, Any]:
    """The settings that say what a network computes, by name: those that its architecture reads."""
    reads = {*MODELS[network.architecture].reads, "precision"} - _DRAWN
    settings = {"architecture": network.architecture, "hidden_size": network.hidden_size}
    others = {name: x for name, x in network.model_dump().items() if name in reads}
    return settings | {name: x for name, x in others.items() if x not in (0, "", ()) or x is False}
