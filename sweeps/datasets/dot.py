"""Reading automata from drawings in Graphviz's language DOT, as states and transitions.

Defaults, blocks, chains of edges and comments have their meaning in Graphviz
(https://graphviz.org/doc/info/lang.html). Anything that is no part of a directed graph is refused.
Pydot 4 is unsuitable: it reads `a -- b` as an arrow, drops text after the graph, refuses
`[shape=circle; peripheries=2]`, has no line numbers, and takes twice as long for each nested block.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from seqcls.errors import DatasetError
from sweeps.datasets.tables import refused_in

Attributes = Mapping[str, str]

Defaults = dict[str, dict[str, str]]
"""Default attributes for each `graph`, `node` and `edge` that follows in a block."""


class Arcs(NamedTuple):
    """An automaton as it is written in a file, with the file's names of states."""

    start: str
    accepting: Sequence[str]
    arcs: Sequence[tuple[str, str, str]]
    """Triples of source, symbol and target."""
    symbols: Sequence[str] = ()
    """Further symbols of the alphabet, which may be on no arc."""
    read_as: Sequence[str] = ()
    """Sentences on the interpretation of the file."""


class _Edge(NamedTuple):
    source: str
    target: str
    attributes: Attributes
    line: int


class _Token(NamedTuple):
    text: str
    """The text without quotation marks; escapes of labels are not replaced."""
    kind: str
    """`id`, `sign` (including keywords), or `end` after the last one."""
    line: int


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    r"(?P<blank>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<sign>->|--|[{}\[\]=;,:]|"
    # Keywords are case-insensitive, and are plain texts in quotation marks.
    r"(?i:strict|graph|digraph|node|edge|subgraph)\b)|"
    rf"(?P<quoted>{_QUOTED}(?:\s*\+\s*{_QUOTED})*)|"
    r"(?P<id>-?(?:\.\d+|\d+(?:\.\d*)?)(?![\w.])|[^\W\d]\w*)|(?P<other>[^\n]{1,40})",
    re.DOTALL,
)


def _tokens_of(text: str) -> Iterator[_Token]:
    line = 1
    for token in _TOKEN.finditer(text):
        kind, written = token.lastgroup or "", token[0]
        if kind == "quoted":
            parts = [part[1:-1] for part in re.findall(_QUOTED, written, re.DOTALL)]
            # A backslash at its end continues a line.
            yield _Token(re.sub(r"\\\r?\n", "", "".join(parts)), "id", line)
        elif kind != "blank":
            yield _Token(written.lower() if kind == "sign" else written, kind, line)
        line += written.count("\n")
    yield _Token("the end of the file", "end", line)


class _Graph:
    """The nodes and edges of a directed graph, with their attributes."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[_Edge] = []
        self._blocks: dict[str, Defaults] = {}
        """The defaults of named blocks, which may be continued later."""
        self._tokens = _tokens_of(text)
        self._next = next(self._tokens)
        self.is_strict = self._takes("strict")
        """True if two edges between the same nodes are one."""
        if not self._takes("digraph"):
            raise self._refusal("'digraph {', with arrows as '0 -> 1'")
        if self._next.kind == "id":
            self._advance()
        self._block({word: {} for word in ("graph", "node", "edge")})
        if self._next.kind != "end":
            raise self._refusal("nothing behind the graph")

    def _advance(self) -> str:
        token, self._next = self._next, next(self._tokens)
        return token.text

    def _takes(self, *signs: str) -> bool:
        """Consumes the next token if it is one of these; True if it was."""
        found = self._next.kind == "sign" and self._next.text in signs
        if found:
            self._advance()
        return found

    def _refusal(self, expected: str) -> DatasetError:
        return DatasetError(f"line {self._next.line}: {self._next.text!r:.60}, expected {expected}")

    def _id(self, expected: str) -> str:
        if self._next.kind != "id":
            raise self._refusal(expected)
        return self._advance()

    def _block(self, defaults: Defaults) -> list[str]:
        """Parses a block in braces; returns the nodes named there."""
        if not self._takes("{"):
            raise self._refusal("'{'")
        named: dict[str, None] = {}
        while not self._takes("}"):
            named |= dict.fromkeys(self._statement(defaults))
            self._takes(";")
        return list(named)

    def _statement(self, defaults: Defaults) -> list[str]:
        for word, of_word in defaults.items():
            if self._takes(word):
                of_word |= self._attributes()
                return []
        line, ends = self._next.line, [self._end(defaults)]
        if self._takes("="):
            # An attribute of the graph, which is ignored.
            self._id("a value")
            return []
        while self._takes("->"):
            ends.append(self._end(defaults))
        attributes, names = self._attributes(), [name for some in ends for name in some]
        for name in names:
            # Graphviz applies the defaults at a node's first occurrence, whatever is set later.
            node = self.nodes.setdefault(name, {**defaults["node"]})
            node.update(attributes if len(ends) == 1 else {})
        made = {**defaults["edge"], **attributes}
        for sources, targets in pairwise(ends):
            self.edges += [_Edge(a, b, made, line) for a in sources for b in targets]
        return names

    def _end(self, defaults: Defaults) -> list[str]:
        """Parses the nodes at an end of an edge: one, or those of a block."""
        if self._next.kind == "id":
            name = self._advance()
            # Ports of nodes are ignored.
            while self._takes(":"):
                self._id("the place of a node at which an edge ends")
            return [name]
        # Defaults that are set within a block end with it.
        inner = {word: {**own} for word, own in defaults.items()}
        if self._takes("subgraph"):
            if self._next.kind == "id":
                inner = self._blocks.setdefault(self._advance(), inner)
        elif self._next.text != "{":
            raise self._refusal("a node, an edge as '0 -> 1', or attributes in brackets")
        return self._block(inner)

    def _attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._takes("["):
            while not self._takes("]"):
                name = self._id("the name of an attribute, or ']'")
                if not self._takes("="):
                    raise self._refusal(f"'=' behind the name of the attribute {name!r:.40}")
                found[name] = self._id("a value, in quotation marks")
                self._takes(";", ",")
        return found


# Interpretation of the drawing.

_PIECE = re.compile(r"\\(.)|&(?:#\d+|#x[0-9a-f]+|[a-z]+);", re.DOTALL | re.IGNORECASE)
_PLACEHOLDER = 0xF0000
"""The first of the private characters that replace escaped ones, which do not separate symbols."""
_JOINED = re.compile(
    r"""\[.*\]|[!^~].+|Σ.+|.[-\u2013].|.\.\.+.|.+[|/:;+].+|['"`\u2018\u201c].*['"`\u2019\u201d]|"""
    r"[\[({<][^\])}>]+|[^\[({<]+[\])}>]",
    re.DOTALL,
)
"""Labels that may abbreviate several or other symbols, or are in quotation marks."""

_NOT_DRAWN = ("point", "none", "plaintext", "plain")
_ONE_RING = (
    *("circle", "ellipse", "oval", "box", "rect", "rectangle", "square", "egg", "diamond"),
    *("hexagon", "octagon", "record", "Mrecord"),
)
"""Shapes of states that do not accept."""


def drawn_arcs(text: str) -> Arcs:
    """The automaton drawn by a text in DOT: states with two rings accept, an arrow without a label
    leads to the start.

    Raises:
        DatasetError: it draws no automaton; with the line.
    """
    try:
        graph = _Graph(text)
    except RecursionError:
        raise DatasetError("too many blocks within blocks") from None
    edges = [(edge, _symbols(edge)) for edge in graph.edges if not _is_invisible(edge.attributes)]
    rings = {name: _has_two_rings(name, own) for name, own in graph.nodes.items()}
    # Invisible nodes, or a node named "start", point to the start.
    marks = {name for name, two in rings.items() if two is None}
    marks |= {edge.source for edge, symbols in edges if edge.source == "start" and not symbols}
    starts: list[str] = []
    arcs: dict[tuple[str, str], list[str]] = {}
    for (source, target, _, line), symbols in edges:
        if target in marks or (source in marks) == bool(symbols):
            raise DatasetError(
                f"line {line}: the edge from {source!r:.40} to {target!r:.40} is "
                f"{'labeled' if symbols else 'not labeled'}, expected a label between states, and "
                "none from a node that is not drawn"
            )
        if not symbols:
            starts.append(target)
            continue
        if graph.is_strict and (source, target) in arcs:
            raise DatasetError(
                f"line {line}: a second edge from {source!r:.40} to {target!r:.40}, which in a "
                "strict graph replaces the first; remove 'strict'"
            )
        arcs.setdefault((source, target), []).extend(symbols)
    if len(starts) != 1:
        raise DatasetError(
            f"{len(starts)} arrows from start, expected one: an edge without a label from a node "
            "that is not drawn, as start [shape=point]"
        )
    accepting = [name for name, two in rings.items() if two]
    for state in (*starts, *accepting):
        if not any(state in ends for ends in arcs):
            raise DatasetError(f"state {state!r:.40} is unknown: it has no transition")
    made = [(source, x, target) for (source, target), symbols in arcs.items() for x in symbols]
    return Arcs(starts[0], accepting, made)


def _is_invisible(attributes: Attributes) -> bool:
    return "invis" in re.split(r"\W+", attributes.get("style", ""))


def _has_two_rings(name: str, own: Attributes) -> bool | None:
    """True if a node is drawn as an accepting state; None if it is not drawn as a state."""
    shape, rings = own.get("shape", "ellipse"), own.get("peripheries", "")
    if shape in _NOT_DRAWN or _is_invisible(own):
        return None
    if shape == "doublecircle" and rings in ("", "2"):
        return True
    if shape not in _ONE_RING or rings not in ("", "1", "2"):
        raise DatasetError(
            f"state {name!r:.40} has shape={shape!r:.40} and peripheries={rings!r:.40}, expected "
            "doublecircle where it accepts, else circle"
        )
    return rings == "2"


def _symbols(edge: _Edge) -> list[str]:
    """The symbols of an edge's label; empty without a label."""
    what = f"line {edge.line}: the edge from {edge.source!r:.40} to {edge.target!r:.40}"
    for name in ("xlabel", "headlabel", "taillabel", "dir"):
        if value := edge.attributes.get(name, "").removeprefix("forward"):
            raise DatasetError(
                f"{what} has {name}={value!r:.40}; write all its symbols in 'label', and it forward"
            )
    label = edge.attributes.get("label", "")
    with refused_in(f"{what}: label {label!r:.60} "):
        return _symbols_of(label)


def _symbols_of(label: str) -> list[str]:
    """The symbols in a label, separated by commas and line ends, as drawings merge parallel edges.

    An escaped character is part of a symbol.
    """
    escapes = list[str]()

    def read(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped is None:
            return html.unescape(found[0])
        if escaped in "NGETHL":
            raise DatasetError(f"has '\\{escaped}', which stands for a name; write the symbol")
        if escaped in 'nlr"':
            return escaped if escaped == '"' else "\n"
        escapes.append(escaped)
        return chr(_PLACEHOLDER + len(escapes) - 1)

    lines = re.split(r"[\r\n]+", _PIECE.sub(read, label).strip())
    # A line may end with the comma before the next one.
    lines = [re.sub(r"(?<=.),\s*$", "", x) for x in lines[:-1]] + lines[-1:]
    parts = [part.strip() for line in lines for part in line.strip().split(", ")]
    if parts == [""]:
        return []
    written = [x.strip() for part in parts for x in ([","] if part == "," else part.split(","))]
    for symbol in written:
        if not symbol:
            raise DatasetError("has nothing between two commas; write the symbol ',' as '\\,'")
        if _JOINED.fullmatch(symbol):
            raise DatasetError(
                f"has {symbol!r:.40}, which may stand for other symbols; write each, with commas "
                "between, and a backslash before every sign that is part of one"
            )
    placeholders = "[\U000f0000-\U000fffff]"
    return [
        re.sub(placeholders, lambda x: escapes[ord(x[0]) - _PLACEHOLDER], symbol)
        for symbol in written
    ]
