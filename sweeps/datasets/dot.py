"""Graphs in the language DOT: their nodes and edges, each with the attributes that it has.

Defaults, blocks, chains of edges and comments mean what they mean to Graphviz
(https://graphviz.org/doc/info/lang.html). What is no part of a directed graph is refused.
Pydot 4 does not do: it reads `a -- b` as an arrow, drops what stands behind the graph, refuses
`[shape=circle; peripheries=2]`, has no lines, and takes twice as long for each nested block.
"""

import re
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from seqcls.errors import DatasetError

Attributes = dict[str, str]

MAX_NESTED = 20
"""Blocks within blocks at most."""

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    r"(?P<blank>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<sign>->|--|[{}\[\]=;,:]|"
    # Words mean the same in capitals, and nothing of the kind in quotation marks.
    r"(?i:strict|graph|digraph|node|edge|subgraph)\b)|"
    rf"(?P<quoted>{_QUOTED}(?:\s*\+\s*{_QUOTED})*)|"
    r"(?P<id>-?(?:\.\d+|\d+(?:\.\d*)?)(?![\w.])|[^\W\d]\w*)|(?P<other>.)",
    re.DOTALL,
)


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
    """What was written; between quotation marks, with the escapes of labels as they are."""
    kind: str
    """`id`, `sign`, which words are too, or, behind the last one, `end`."""
    line: int
    written: str


@dataclass
class _Block:
    """What stands in braces."""

    defaults: dict[str, ChainMap[str, str]]
    """What it says, from there on, of its `graph`, and of every `node` and `edge` made in it."""
    named: dict[str, None] = field(default_factory=dict)
    """The nodes in it."""
    blocks: dict[str, "_Block"] = field(default_factory=dict)
    """Those in it that have a name, under which they may go on later."""


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
        self._read(_Block({word: ChainMap() for word in ("graph", "node", "edge")}))
        if self._next.kind != "end":
            raise self._refusal("nothing behind the graph")

    def _advance(self) -> str:
        token, self._next = self._next, next(self._tokens)
        return token.text

    def _has(self, *signs: str) -> bool:
        return self._next.kind == "sign" and self._next.text in signs

    def _takes(self, *signs: str) -> bool:
        """Whether one of these comes next, which is then left behind."""
        found = self._has(*signs)
        if found:
            self._advance()
        return found

    def _refusal(self, expected: str) -> DatasetError:
        what = f"{self._next.written!r:.60}" if self._next.written else "the end of the file"
        return DatasetError(f"line {self._next.line}: {what}, expected {expected}")

    def _id(self, expected: str) -> str:
        if self._next.kind != "id":
            raise self._refusal(expected)
        return self._advance()

    def _read(self, block: _Block) -> list[str]:
        """Reads what stands in braces; the nodes that are named there."""
        if len(block.defaults["node"].maps) > MAX_NESTED + 1:
            raise self._refusal(f"at most {MAX_NESTED} blocks within blocks")
        if not self._takes("{"):
            raise self._refusal("'{'")
        while not self._takes("}"):
            self._statement(block)
            self._takes(";")
        return list(block.named)

    def _statement(self, block: _Block) -> None:
        for word, defaults in block.defaults.items():
            if self._takes(word):
                if not self._has("["):
                    raise self._refusal(f"attributes of every {word}, as {word} [color=black]")
                defaults.update(self._attributes())
                return
        first = self._next
        ends = [self._end(block)]
        if first.kind == "id" and self._takes("="):
            # An attribute of the graph.
            self._id("a value")
            return
        while self._takes("->"):
            ends.append(self._end(block))
        block.named.update(dict.fromkeys(name for names in ends for name in names))
        attributes = self._attributes()
        if len(ends) > 1:
            made = {**block.defaults["edge"], **attributes}
            for sources, targets in pairwise(ends):
                self.graph.edges += [Edge(a, b, made, first.line) for a in sources for b in targets]
        elif first.kind == "id":
            for name in ends[0]:
                self._describe(name, attributes, first.line)
        elif attributes:
            raise self._refusal("no attributes of a block")

    def _end(self, block: _Block) -> list[str]:
        """The nodes at an end of an edge: those between commas, or those of a block."""
        if self._next.kind == "id":
            names: list[str] = []
            while not names or self._takes(","):
                names.append(self._id("a node"))
                # Where at the node an edge ends says nothing.
                while self._takes(":"):
                    self._id("the place of a node at which an edge ends")
            if not self._has("="):
                for name in names:
                    self.graph.nodes.setdefault(name, {**block.defaults["node"]})
            return names
        inner = _Block({word: said.new_child() for word, said in block.defaults.items()})
        if self._takes("subgraph"):
            if self._next.kind == "id":
                inner = block.blocks.setdefault(self._advance(), inner)
        elif not self._has("{"):
            raise self._refusal("a node, an edge as '0 -> 1', or attributes in brackets")
        return self._read(inner)

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
                if not self._takes("="):
                    raise self._refusal(f"'=' behind the name of the attribute {name!r:.40}")
                found[name] = self._id("a value, in quotation marks")
                self._takes(";", ",")
        return found


def _tokens_of(text: str) -> Iterator[_Token]:
    line = 1
    for token in _TOKEN.finditer(text):
        kind, written = token.lastgroup or "", token[0]
        if kind == "other":
            rest = text[token.start() :].split("\n", 1)[0][:40]
            raise DatasetError(
                f"line {line}: {rest!r}, expected a graph in the language DOT"
                + "; write the text of a label in quotation marks, not as HTML" * (written == "<")
            )
        if kind == "quoted":
            parts = [part[1:-1] for part in re.findall(_QUOTED, written, re.DOTALL)]
            # A line goes on behind a backslash at its end.
            yield _Token(re.sub(r"\\\r?\n", "", "".join(parts)), "id", line, written)
        elif kind != "blank":
            yield _Token(written.lower() if kind == "sign" else written, kind, line, written)
        line += written.count("\n")
    yield _Token("", "end", line, "")
