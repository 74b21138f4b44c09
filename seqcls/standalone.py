"""A model as one PyTorch file that needs nothing of this package.

The file is the readable truth of `seqcls.models` itself, cut to what one network computes: what it
never calls is left out, and of what hangs on its settings the branch that it takes is kept.
"""

import ast
import importlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS, architecture_of_letter
from seqcls.models.positions import POSITIONS, table_size

_CALLED = {"forward", "setup_context", "backward", "activations"}
"""Methods that are called from outside; others are kept where something that is kept names them."""

_VARIED = ("attention_mask", "no_attend_cls")
"""Settings that an encoder and a decoder each have of their own."""

_Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


def source_of(network: NetworkConfig) -> tuple[str, str]:
    """The program text of a network's classes, and the name of the model's class.

    Raises:
        ConfigError: it reads what only its task knows.
    """
    for setting in ("coupling", "picture"):
        if getattr(network, setting):
            raise ConfigError(
                f"a model of its own file: the task says what this network reads ({setting}), and "
                "a file without the task cannot; expected one that reads tokens at their own places"
            )
    model = MODELS[network.architecture].load()
    mixers = [MODELS[architecture_of_letter(x)].load_mixer() for x in network.layers]
    parts = _Parts(network, POSITIONS[network.positions].load(), mixers)
    parts.include(model.__module__, model.__name__)
    return parts.text(), model.__name__


@cache
def _module(name: str) -> tuple[dict[str, _Definition], dict[str, tuple[str, str | None]]]:
    """What a module defines, and what it imports: each name's module, and its name there."""
    found = importlib.import_module(name)
    with open(str(found.__file__), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    defined: dict[str, _Definition] = {}
    imported: dict[str, tuple[str, str | None]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            of_names = (x for target in targets for x in ast.walk(target))
            defined |= {x.id: node for x in of_names if isinstance(x, ast.Name)}
        elif isinstance(node, ast.Import):
            imported |= {x.asname or x.name: (x.name, None) for x in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {x.asname or x.name: (node.module, x.name) for x in node.names}
    return defined, imported


class _Parts:
    """Definitions that a model is made of, out of the modules where they stand."""

    def __init__(self, network: NetworkConfig, positions: type, mixers: Sequence[type]) -> None:
        self._network = network
        self._positions = positions
        self._mixers = [mixer.__name__ for mixer in mixers]
        self._looked_up = {part.__name__: part.__module__ for part in (positions, *mixers)}
        """The modules of classes that settings name."""
        self._found: dict[str, tuple[str, _Definition]] = {}
        self._imports: dict[str, tuple[str, str | None]] = {}
        self._called = set(_CALLED)
        """Attributes that what is found names; it grows with that."""
        self._pruned: dict[tuple[str, tuple[int, ...]], _Definition] = {}

    def include(self, module: str, name: str) -> None:
        """Takes in a definition, and all that it names, in turn."""
        self._find(module, name)
        before: tuple[int, int] | None = None
        while before != (before := (len(self._found), len(self._called))):
            for name in list(self._found):
                self._find_all(name)

    def _find(self, module: str, name: str) -> None:
        defined, imported = _module(module)
        while name not in defined and name in imported:
            origin, theirs = imported[name]
            if theirs is None or not self._is_ours(origin):
                self._imports[name] = (origin, theirs)
                return
            module, name = origin, theirs
            defined, imported = _module(module)
        if name in self._found and self._found[name][0] != module and name in defined:
            raise ConfigError(f"a model of its own file: two of its parts are called {name!r}")
        if name in defined and name not in self._found:
            self._found[name] = (module, self._cut(defined[name]))
            self._call()

    def _cut(self, node: _Definition) -> _Definition:
        return _Cut(self._network, self._positions, self._mixers).of(node)

    def _is_ours(self, module: str) -> bool:
        roots = {"seqcls", *(x.partition(".")[0] for x in self._looked_up.values())}
        roots.add(MODELS[self._network.architecture].load().__module__.partition(".")[0])
        return module.partition(".")[0] in roots

    def _find_all(self, name: str) -> None:
        module, _ = self._found[name]
        for used in _names(self._prune(name)):
            self._find(self._looked_up.get(used, module), used)

    def _call(self) -> None:
        """Takes in the attributes that what is found names, until there are no more."""
        before = -1
        while before != (before := len(self._called)):
            for name in self._found:
                self._called |= _attributes(self._prune(name))

    def _prune(self, name: str) -> _Definition:
        """A definition without the methods and attributes of a class that nothing names."""
        _, node = self._found[name]
        if not isinstance(node, ast.ClassDef) or _is_record(node):
            return node
        needed = [x for x, y in enumerate(node.body) if _is_needed(y, self._called)]
        key = name, tuple(needed)
        if key not in self._pruned:
            self._pruned[key] = ast.fix_missing_locations(
                ast.ClassDef(
                    name=node.name,
                    bases=node.bases,
                    keywords=node.keywords,
                    body=[node.body[x] for x in needed] or [ast.Pass()],
                    decorator_list=node.decorator_list,
                )
            )
        return self._pruned[key]

    def text(self) -> str:
        """The text of all, each after what it needs to be defined."""
        nodes = {name: self._prune(name) for name in self._found}
        used = {x for node in nodes.values() for x in _names(node)}
        lines: dict[str, None] = {}
        for name in reversed(nodes):
            self._add(name, nodes, lines)
        # What surrounds the model calls PyTorch, too.
        imports = {*self._import_lines(used), "import torch"}
        return "\n".join([*sorted(imports), "", "", "\n\n\n".join(lines)])

    def _add(self, name: str, nodes: Mapping[str, _Definition], lines: dict[str, None]) -> None:
        node = nodes[name]
        if (text := ast.unparse(node)) in lines:
            return
        for needed in _names_to_define(node):
            # One assignment may have several names.
            if needed in nodes and ast.dump(nodes[needed]) != ast.dump(node):
                self._add(needed, nodes, lines)
        lines[text] = None

    def _import_lines(self, used: set[str]) -> Iterator[str]:
        for name, (module, theirs) in self._imports.items():
            if name not in used or module == "jaxtyping":
                continue
            renamed = "" if name == (theirs or module) else f" as {name}"
            yield (
                f"import {module}{renamed}"
                if theirs is None
                else (f"from {module} import {theirs}{renamed}")
            )


# Asked of the same few thousand parts again and again, where each walk takes long.
@lru_cache(maxsize=2**13)
def _names(node: ast.AST) -> list[str]:
    """All names that stand in a definition, in their order."""
    return list(dict.fromkeys(x.id for x in ast.walk(node) if isinstance(x, ast.Name)))


@lru_cache(maxsize=2**13)
def _attributes(node: ast.AST) -> frozenset[str]:
    """The names of all attributes that stand in a definition."""
    return frozenset(x.attr for x in ast.walk(node) if isinstance(x, ast.Attribute))


def _names_to_define(node: _Definition) -> list[str]:
    """Those that have to be there before it is defined."""
    if isinstance(node, ast.FunctionDef):
        parts: Iterable[ast.AST] = [*node.decorator_list, *node.args.defaults]
    elif isinstance(node, ast.ClassDef):
        own = [x for x in node.body if not isinstance(x, ast.FunctionDef)]
        methods = [x for x in node.body if isinstance(x, ast.FunctionDef)]
        defaults = [
            x for method in methods for x in [*method.decorator_list, *method.args.defaults]
        ]
        parts = [*node.bases, *node.decorator_list, *own, *defaults]
    else:
        parts = [node]
    return [name for part in parts for name in _names(part)]


def _is_record(node: ast.ClassDef) -> bool:
    """Whether a class is its fields, so that none may be left out."""
    said = {x for part in (*node.bases, *node.decorator_list) for x in _names(part)}
    return bool(said & {"NamedTuple", "dataclass"})


def _is_needed(node: ast.stmt, called: set[str]) -> bool:
    """Whether a statement of a class is anything but a method or attribute that nothing names."""
    if isinstance(node, ast.FunctionDef):
        return node.name in called or (node.name[:2] == "__" and node.name != "__reduce__")
    if isinstance(node, ast.Assign):
        return any(x in called for target in node.targets for x in _names(target))
    # A docstring of the class; those of attributes go with them.
    return isinstance(node, ast.Expr)


class _Cut(ast.NodeTransformer):
    """Leaves out annotations, and the branches that a network with these settings does not take."""

    def __init__(self, network: NetworkConfig, positions: type, mixers: Sequence[str]) -> None:
        self._mixers = mixers
        self._known = network_json(network)
        for name in _VARIED:
            del self._known[name]
        self._positions = positions.__name__
        self._table_size = table_size(network)

    def of(self, node: _Definition) -> _Definition:
        """A definition that is cut; the one that is given stays as it is."""
        copy = ast.parse(ast.unparse(node)).body[0]
        if isinstance(copy, ast.FunctionDef) and copy.name == "table_size":
            # How many there are the settings and the trained strings say.
            copy.body = [ast.Return(ast.Constant(self._table_size))]
        cut: _Definition = ast.fix_missing_locations(self.visit(copy))
        return cut

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        arguments = node.args
        optional = [x for x in (arguments.vararg, arguments.kwarg) if x is not None]
        for argument in (*arguments.args, *arguments.kwonlyargs, *optional):
            argument.annotation = None
        self.generic_visit(node)
        ends = [x for x, y in enumerate(node.body) if isinstance(y, ast.Return | ast.Raise)]
        node.body = node.body[: ends[0] + 1] if ends else node.body or [ast.Pass()]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        is_record = _is_record(node)
        body: list[ast.stmt] = []
        for number, statement in enumerate(node.body):
            if is_record and isinstance(statement, ast.AnnAssign):
                statement.annotation = ast.Name("object")
                body.append(statement)
            elif not isinstance(statement, ast.Expr) or number == 0:
                made = self.visit(statement)
                body += [] if made is None else [made]
        node.body = body or [ast.Pass()]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Assert(self, node: ast.Assert) -> None:
        # They tell a type checker what is known.
        del node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if (known := self._value(node.test)) is None:
            node.body = node.body or [ast.Pass()]
            return node
        return node.body if known.value else node.orelse

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        known = self._value(node.test)
        return node if known is None else node.body if known.value else node.orelse

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node) == "POSITIONS[config.positions].load()":
            return ast.Name(self._positions)
        if ast.unparse(node) == "mixers_of(self.config)":
            return ast.List([ast.Name(mixer) for mixer in self._mixers])
        return self.generic_visit(node)

    def _value(self, test: ast.expr) -> ast.Constant | None:
        """What a condition comes to, where the settings alone decide it."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inside = self._value(test.operand)
            return None if inside is None else ast.Constant(not inside.value)
        if isinstance(test, ast.BoolOp):
            parts = [self._value(x) for x in test.values]
            decides = isinstance(test.op, ast.Or)
            if any(x is not None and bool(x.value) == decides for x in parts):
                return ast.Constant(decides)
            return ast.Constant(not decides) if None not in parts else None
        names = [x for x in ast.walk(test) if isinstance(x, ast.Name | ast.Call)]
        texts = {ast.unparse(x) for x in ast.walk(test) if isinstance(x, ast.Attribute)}
        settings = {x.rpartition(".")[2] for x in texts if x.rpartition(".")[2] in self._known}
        prefixes = {f"{x}{name}" for x in ("config.", "self.config.") for name in settings}
        if not settings or not texts <= prefixes | {"self.config"}:
            return None
        if any(isinstance(x, ast.Call) or x.id not in ("self", "config") for x in names):
            return None
        text = ast.unparse(test).replace("self.config.", "config.")
        # Only settings, constants and operators are left.
        return ast.Constant(eval(text, {"__builtins__": {}}, {"config": _Known(self._known)}))


class _Known:
    """Settings as attributes."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        vars(self).update(known)


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
