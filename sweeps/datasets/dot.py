"""Graphs in the language DOT: their nodes and edges, each with the attributes that it has.

Defaults, blocks, chains of edges and comments mean what they mean to Graphviz
(https://graphviz.org/doc/info/lang.html). What is no part of a directed graph is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from seqcls.errors import DatasetError

Attributes = dict[str, str]

MAX_NESTED = 20
"""Blocks within blocks at most."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_BLANK = r"(?:\s|//[^\n]*|/\*.*?\*/|^\#[^\n]*)*"
_TOKEN = re.compile(
    rf"{_BLANK}(?:(?P<id>{_QUOTED}(?:\s*\+\s*{_QUOTED})*|-?(?:\.\d+|\d+(?:\.\d*)?)(?![\w.])|"
    r"[^\W\d]\w*)|(?P<sign>->|--|[{}\[\]=;,:]))",
    re.DOTALL | re.MULTILINE,
)
_END = re.compile(rf"{_BLANK}\Z", re.DOTALL | re.MULTILINE)
_WORDS = ("strict", "graph", "digraph", "node", "edge", "subgraph")
"""They mean the same in capitals, and nothing of the kind in quotation marks."""


class Edge(NamedTuple):
    """One arrow."""

    source: str
    target: str
    attributes: Attributes
    line: int


@dataclass
class Graph:
    """A directed graph."""

    nodes: dict[str, Attributes] = field(default_factory=dict)
    """In the order in which they are named first."""
    edges: list[Edge] = field(default_factory=list)
    is_strict: bool = False
    """Whether two edges between the same nodes are one."""


class _Token(NamedTuple):
    text: str
    """Of a quoted text what stands between the marks, with the escapes of labels as they are."""
    kind: str
    """`id`, `word`, `sign` or, behind the last one, `end`."""
    line: int
    written: str


class _Scope(NamedTuple):
    """What a block says of the nodes and edges that are made in it from there on."""

    node: Attributes
    edge: Attributes


def read_graph(text: str) -> Graph:
    """The graph that a text describes.

    Raises:
        DatasetError: it describes none, or one that is not directed; with the line.
    """
    return _Reader(text).graph


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens_of(text)
        self._next = next(self._tokens)
        self.graph = Graph(is_strict=self._takes("strict"))
        self._said: dict[str, Attributes] = {}
        """What is said of each node by itself, which is to be said once."""
        if not self._takes("digraph"):
            raise self._refusal("'digraph {', with arrows as '0 -> 1'")
        if self._next.kind == "id":
            self._advance()
        self._block(_Scope({}, {}), 0)
        if self._next.kind != "end":
            raise self._refusal("nothing behind the graph")

    def _advance(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def _takes(self, *texts: str) -> bool:
        """Whether one of these words or signs comes next, which is then left behind."""
        found = self._next.kind in ("word", "sign") and self._next.text in texts
        if found:
            self._advance()
        return found

    def _refusal(self, expected: str) -> DatasetError:
        what = f"{self._next.written!r:.60}" if self._next.written else "the end of the file"
        return DatasetError(f"line {self._next.line}: {what}, expected {expected}")

    def _id(self, expected: str) -> str:
        if self._next.kind != "id":
            raise self._refusal(expected)
        return self._advance().text

    def _block(self, scope: _Scope, depth: int) -> list[str]:
        """Reads what stands in braces; the nodes that are named there."""
        if depth > MAX_NESTED:
            raise self._refusal(f"at most {MAX_NESTED} blocks within blocks")
        if not self._takes("{"):
            raise self._refusal("'{'")
        named: dict[str, None] = {}
        while not self._takes("}"):
            named.update(dict.fromkeys(self._statement(scope, depth)))
            self._takes(";")
        return list(named)

    def _statement(self, scope: _Scope, depth: int) -> list[str]:
        for word, defaults in (("node", scope.node), ("edge", scope.edge), ("graph", {})):
            if self._takes(word):
                if (self._next.text, self._next.kind) != ("[", "sign"):
                    raise self._refusal(f"attributes of every {word}, as {word} [color=black]")
                defaults.update(self._attributes())
                return []
        is_node, line = self._next.kind == "id", self._next.line
        ends = [self._end(scope, depth)]
        if is_node and self._takes("="):
            # An attribute of the graph.
            self._id("a value")
            return []
        if is_node:
            self._make(ends[0], scope)
        while self._takes("->"):
            is_one = self._next.kind == "id"
            ends.append(self._end(scope, depth))
            if is_one:
                self._make(ends[-1], scope)
        attributes = self._attributes()
        if len(ends) > 1:
            made = {**scope.edge, **attributes}
            for sources, targets in pairwise(ends):
                self.graph.edges += [Edge(a, b, made, line) for a in sources for b in targets]
        elif is_node:
            self._describe(ends[0][0], attributes, line)
        elif attributes:
            raise self._refusal("no attributes of a block")
        return [name for some in ends for name in some]

    def _end(self, scope: _Scope, depth: int) -> list[str]:
        """The nodes at an end of an edge: one, or those of a block."""
        if self._takes("subgraph"):
            if self._next.kind == "id":
                self._advance()
        elif self._next.kind == "id":
            name = self._advance().text
            # Where at the node an edge ends says nothing.
            while self._takes(":"):
                self._id("the place of a node at which an edge ends")
            return [name]
        if (self._next.text, self._next.kind) != ("{", "sign"):
            raise self._refusal("a node, an edge as '0 -> 1', or attributes in brackets")
        return self._block(_Scope({**scope.node}, {**scope.edge}), depth + 1)

    def _make(self, names: list[str], scope: _Scope) -> None:
        for name in names:
            self.graph.nodes.setdefault(name, {**scope.node})

    def _describe(self, name: str, attributes: Attributes, line: int) -> None:
        said = self._said.setdefault(name, {})
        for attribute, value in attributes.items():
            if said.setdefault(attribute, value) != value:
                raise DatasetError(
                    f"line {line}: node {name!r:.40} has {attribute}={value!r:.40}, but before "
                    f"{said[attribute]!r:.40}; keep one"
                )
        self.graph.nodes[name].update(attributes)

    def _attributes(self) -> Attributes:
        found: Attributes = {}
        while self._takes("["):
            while not self._takes("]"):
                name = self._id("the name of an attribute, or ']'")
                found[name] = (
                    self._id("a value, in quotation marks") if self._takes("=") else "true"
                )
                self._takes(";", ",")
        return found


def _tokens_of(text: str) -> Iterator[_Token]:
    place, line = 0, 1
    while not _END.match(text, place):
        token = _TOKEN.match(text, place)
        start = token.start(token.lastgroup or 0) if token else _after_blank(text, place)
        line += text.count("\n", place, start)
        if token is None:
            rest = text[start:].split("\n", 1)[0][:40]
            is_html = text[start] == "<"
            raise DatasetError(
                f"line {line}: {rest!r}, expected a graph in the language DOT"
                + "; write the text of a label in quotation marks, not as HTML" * is_html
            )
        written, place = text[start : token.end()], token.end()
        kind, said = token.lastgroup or "", written
        if written[0] == '"':
            parts = [part[1:-1] for part in re.findall(_QUOTED, written, re.DOTALL)]
            # A line goes on behind a backslash at its end.
            said = re.sub(r"\\\r?\n", "", "".join(parts))
        elif kind == "id" and written.lower() in _WORDS:
            kind, said = "word", written.lower()
        yield _Token(said, kind, line, written)
        line += written.count("\n")
    yield _Token("", "end", line + text.count("\n", place), "")


_BLANKS = re.compile(_BLANK, re.DOTALL | re.MULTILINE)


def _after_blank(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place
