"""Writing of a model as one PyTorch file that does not need this package.

The file consists of the unchanged files of `seqcls.models` that a network imports, each after those
that it imports; then `seqcls/given.py`, which loads and evaluates the model. Their imports from the
rest of this package are replaced by the little that the network computes with (`_HEAD`,
`_stand_in`).
"""

import importlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.memories import MixingArchitecture
from seqcls.models.positions import POSITIONS, table_size

_MODELS = "seqcls.models"

_COMPUTES_NOTHING = {
    f"{_MODELS}.{x}" for x in ("positions", "architectures", "memories", "parts", "pictures")
}
"""Files without computations of a network. Networks that read pictures are not given away."""

_HEAD = '''"""A model that seqcls gave away, as one file: it needs torch, numpy and safetensors.

    python model.py STRING...

says what the model answers; `load()` gives the model, `logits` and `write` ask it.
"""

from __future__ import annotations

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

_IN_HEAD = {"POSITIONS", "MODELS", "architecture_of_letter", "table_size", "separator_id"}

_IMPORT = re.compile(r"^from ([\w.]+) import (\([^)]*\)|.+)\n", re.MULTILINE)

_DEFINED = re.compile(r"^(?:class|def) (\w+)|^([A-Z_]+)\b[^\n]* = .*", re.MULTILINE)
"""The beginning of a class or a function, or a constant that is no type of arrays."""


def source_of(network: NetworkConfig) -> str:
    """Returns the program text of a network's file; `MODEL` is the network's class in it.

    Raises:
        ConfigError: its inputs depend on the task, or two of its files define one name.
    """
    for setting in ("coupling", "picture"):
        if getattr(network, setting):
            raise ConfigError(
                f"a model of its own file: the task says what this network reads ({setting}), and "
                "a file without the task cannot; expected one that reads tokens at their own places"
            )
    described = MODELS[network.architecture]
    model, mixers, positions = described.load(), {}, {}
    if issubclass(described, MixingArchitecture):
        letters = {x: architecture_of_letter(x) for x in network.layers}
        letters = letters or {network.architecture: network.architecture}
        mixers = {x: MODELS[name].load_mixer() for x, name in letters.items()}
    if "positions" in described.reads:
        positions[network.positions] = POSITIONS[network.positions].load()
    files, outside = dict[str, str](), dict[str, object]()
    for part in (*positions.values(), *mixers.values(), model):
        _add_file(part.__module__, files, outside)
    # It comes last, since it calls functions of the others.
    _add_file("seqcls.given", files, outside)
    *texts, loader = files.values()
    head = _HEAD.format(
        stand_ins="\n".join(_stand_in(x, y) for x, y in outside.items() if x not in _IN_HEAD),
        positions=_list(positions),
        mixers=_list(mixers),
        table_size=table_size(network),
    )
    names = Counter(x or y for text in (head, *texts, loader) for x, y in _DEFINED.findall(text))
    if twice := [name for name, times in names.items() if times > 1]:
        raise ConfigError(f"a model of its own file: two of its parts are called {twice[0]!r}")
    return head + "\n\n".join([*texts, f"MODEL = {model.__name__}\n", loader])


def _list(parts: Mapping[str, type]) -> str:
    return f"{{{', '.join(f'{x!r}: Named({y.__name__!r})' for x, y in parts.items())}}}"


def _add_file(module: str, files: dict[str, str], outside: dict[str, object]) -> None:
    """Adds a module's file after those that it imports, without its imports from this package;
    names from the rest of this package go to `outside`.
    """
    if module in files:
        return
    text = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")

    def cut(found: re.Match[str]) -> str:
        origin, names = found[1], re.sub("#.*", "", found[2])
        if _is_file(origin, module):
            _add_file(origin, files, outside)
        elif origin.partition(".")[0] == "seqcls":
            # Constants are written out, so their values are needed.
            theirs = importlib.import_module(origin)
            outside.update({x: getattr(theirs, x) for x in re.findall(r"\w+", names)})
        elif origin not in ("__future__", "jaxtyping"):
            return found[0]
        return ""

    # Gaps that imports leave are closed.
    files[module] = re.sub(r"\n{4,}", "\n\n\n", _IMPORT.sub(cut, text)).strip() + "\n"


def _is_file(module: str, importer: str) -> bool:
    """True if a module is a file of a network, or of the package of a plug-in."""
    package = importer.partition(".")[0]
    if package != "seqcls" and module.partition(".")[0] == package:
        return True
    return module.startswith(f"{_MODELS}.") and module not in _COMPUTES_NOTHING


def _stand_in(name: str, value: object) -> str:
    """Returns the replacement of a part of this package that computes nothing, or a constant."""
    if inspect.isclass(value):
        return f"\n\nclass {name}:\n    pass\n"
    if isinstance(value, frozenset):
        return f"{name} = frozenset({sorted(value)!r})"
    is_plain = isinstance(value, int | float | str | tuple | dict)
    return f"{name} = {value!r}" if is_plain else f"{name} = None"


def network_json(network: NetworkConfig) -> dict[str, Any]:
    """Returns the settings that the file reads."""
    settings: dict[str, Any] = json.loads(network.model_dump_json())
    properties = ("has_norms", "vocabulary_size", "writes")
    return {**settings, **{name: getattr(network, name) for name in properties}}


_DRAWN = {x for x in NetworkConfig.model_fields if x.endswith("_init_strategy")}
"""Settings of initial weights."""


def network_settings(network: NetworkConfig) -> dict[str, Any]:
    """Returns the settings that determine a network's function, those its architecture reads."""
    reads = {*MODELS[network.architecture].reads, "precision"} - _DRAWN
    settings = {"architecture": network.architecture, "hidden_size": network.hidden_size}
    others = {name: x for name, x in network.model_dump().items() if name in reads}
    return settings | {name: x for name, x in others.items() if x not in (0, "", ()) or x is False}
