"""Automata as drawings in the language DOT: what Graphviz draws, as states and transitions.

Defaults, blocks, chains of edges and comments mean what they mean to Graphviz
(https://graphviz.org/doc/info/lang.html). What is no part of a directed graph is refused.
Pydot 4 does not do: it reads `a -- b` as an arrow, drops what stands behind the graph, refuses
`[shape=circle; peripheries=2]`, has no lines, and takes twice as long for each nested block.
"""

import html
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from seqcls.errors import DatasetError
from sweeps.datasets.tables import refused_in

Attributes = Mapping[str, str]

MAX_NESTED = 20
"""Blocks within blocks at most."""


class Drawing(NamedTuple):
    """An automaton with the names that a drawing gives its states."""

    start: str
    accepting: list[str]
    arcs: list[tuple[str, str, str]]
    """From, symbol, to."""


class _Edge(NamedTuple):
    source: str
    target: str
    attributes: Attributes
    line: int


class _Token(NamedTuple):
    text: str
    """What was written; between quotation marks, with the escapes of labels as they are."""
    kind: str
    """`id`, `sign`, which words are too, or, behind the last one, `end`."""
    line: int
    written: str


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    r"(?P<blank>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<sign>->|--|[{}\[\]=;,:]|"
    # Words mean the same in capitals, and nothing of the kind in quotation marks.
    r"(?i:strict|graph|digraph|node|edge|subgraph)\b)|"
    rf"(?P<quoted>{_QUOTED}(?:\s*\+\s*{_QUOTED})*)|"
    r"(?P<id>-?(?:\.\d+|\d+(?:\.\d*)?)(?![\w.])|[^\W\d]\w*)|(?P<other>.)",
    re.DOTALL,
)


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


class _Graph:
    """The nodes and edges of a directed graph, each with the attributes that it has."""

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[_Edge] = []
        self._said: dict[tuple[str, str], str] = {}
        """What is said of each node by itself, which is to be said once."""
        self._blocks: dict[str, dict[str, dict[str, str]]] = {}
        """The defaults in blocks that have a name, under which they may go on later."""
        self._tokens = _tokens_of(text)
        self._next = next(self._tokens)
        self.is_strict = self._takes("strict")
        """Whether two edges between the same nodes are one."""
        if not self._takes("digraph"):
            raise self._refusal("'digraph {', with arrows as '0 -> 1'")
        if self._next.kind == "id":
            self._advance()
        self._block({word: {} for word in ("graph", "node", "edge")}, 0)
        if self._next.kind != "end":
            raise self._refusal("nothing behind the graph")

    def _advance(self) -> str:
        token, self._next = self._next, next(self._tokens)
        return token.text

    def _takes(self, *signs: str) -> bool:
        """Whether one of these comes next, which is then left behind."""
        found = self._next.kind == "sign" and self._next.text in signs
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

    def _block(self, defaults: dict[str, dict[str, str]], depth: int) -> list[str]:
        """Reads what stands in braces; the nodes that are named there.

        Args:
            defaults: attributes of every `graph`, `node` and `edge` made in it, from there on.
            depth: blocks around it.
        """
        if depth > MAX_NESTED:
            raise self._refusal(f"at most {MAX_NESTED} blocks within blocks")
        if not self._takes("{"):
            raise self._refusal("'{'")
        named: dict[str, None] = {}
        while not self._takes("}"):
            named.update(dict.fromkeys(self._statement(defaults, depth)))
            self._takes(";")
        return list(named)

    def _statement(self, defaults: dict[str, dict[str, str]], depth: int) -> list[str]:
        for word, of_word in defaults.items():
            if self._takes(word):
                if self._next.text != "[":
                    raise self._refusal(f"attributes of every {word}, as {word} [color=black]")
                of_word.update(self._attributes())
                return []
        first = self._next
        ends = [self._end(defaults, depth)]
        if first.kind == "id" and self._takes("="):
            # An attribute of the graph.
            self._id("a value")
            return []
        while self._takes("->"):
            ends.append(self._end(defaults, depth))
        attributes = self._attributes()
        if len(ends) == 1 and attributes and first.kind != "id":
            raise self._refusal("no attributes of a block")
        names = [name for some in ends for name in some]
        for name in names:
            self.nodes.setdefault(name, {**defaults["node"]})
        for attribute, value in attributes.items() if len(ends) == 1 else ():
            for name in names:
                if (said := self._said.setdefault((name, attribute), value)) != value:
                    raise DatasetError(
                        f"line {first.line}: node {name!r:.40} has {attribute}={value!r:.40}, but "
                        f"before {said!r:.40}; keep one"
                    )
                self.nodes[name][attribute] = value
        made = {**defaults["edge"], **attributes}
        for sources, targets in pairwise(ends):
            self.edges += [_Edge(a, b, made, first.line) for a in sources for b in targets]
        return names

    def _end(self, defaults: dict[str, dict[str, str]], depth: int) -> list[str]:
        """The nodes at an end of an edge: those between commas, or those of a block."""
        if self._next.kind == "id":
            names: list[str] = []
            while not names or self._takes(","):
                names.append(self._id("a node"))
                # Where at the node an edge ends says nothing.
                while self._takes(":"):
                    self._id("the place of a node at which an edge ends")
            return names
        inner = {word: {**said} for word, said in defaults.items()}
        if self._takes("subgraph"):
            if self._next.kind == "id":
                inner = self._blocks.setdefault(self._advance(), inner)
        elif self._next.text != "{":
            raise self._refusal("a node, an edge as '0 -> 1', or attributes in brackets")
        return self._block(inner, depth + 1)

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


# What is drawn.

_PIECE = re.compile(r"\\(.)|&(?:#\d+|#x[0-9a-f]+|[a-z]+);", re.DOTALL | re.IGNORECASE)
_KEPT = 0xF0000
"""Characters that no symbol has stand for those behind a backslash, which separate nothing."""
_JOINED = re.compile(
    r"""\[.*\]|[!^~].+|Σ.+|.[-\u2013].|.\.\.+.|.+[|/:;+].+|['"`\u2018\u201c].*['"`\u2019\u201d]|"""
    r"[\[({<][^\])}>]+|[^\[({<]+[\])}>]",
    re.DOTALL,
)
"""What drawings write for several symbols or for other ones, or in quotation marks."""

_NOT_DRAWN = ("point", "none", "plaintext", "plain")
_ONE_RING = (
    *("circle", "ellipse", "oval", "box", "rect", "rectangle", "square", "egg", "diamond"),
    *("hexagon", "octagon", "record", "Mrecord"),
)
"""Shapes of states that do not accept."""


def drawn_arcs(text: str) -> Drawing:
    """The automaton that a text draws: states with two rings accept, an arrow without a label leads
    to the start.

    Raises:
        DatasetError: it draws none; with the line.
    """
    graph = _Graph(text)
    edges = [(edge, _symbols(edge)) for edge in graph.edges if not _is_invisible(edge.attributes)]
    marks = {edge.source: edge.line for edge, symbols in edges if not symbols}
    rings = {name: _has_two_rings(name, own) for name, own in graph.nodes.items()}
    for name, line in marks.items():
        if rings[name] or not (rings[name] is None or name == "start"):
            raise DatasetError(f"line {line}: an edge from {name!r:.40} has no label")
    starts: list[str] = []
    arcs: dict[tuple[str, str], list[str]] = {}
    for (source, target, _, line), symbols in edges:
        for name in (source, target) if symbols else (target,):
            if name in marks or rings[name] is None:
                raise DatasetError(
                    f"line {line}: {name!r:.40} is not drawn as a state, so no edge with a label "
                    "leaves it, and none leads to it"
                )
        if not symbols:
            starts.append(target)
        elif graph.is_strict and (source, target) in arcs:
            raise DatasetError(
                f"line {line}: a second edge from {source!r:.40} to {target!r:.40}, which in a "
                "strict graph replaces the first; remove 'strict'"
            )
        else:
            arcs.setdefault((source, target), []).extend(symbols)
    if len(starts) != 1:
        raise DatasetError(
            f"{len(starts)} arrows from start, expected one: an edge without a label from a node "
            "that is not drawn, as start [shape=point]"
        )
    made = [(source, x, target) for (source, target), symbols in arcs.items() for x in symbols]
    return Drawing(starts[0], [name for name, two in rings.items() if two], made)


def _is_invisible(attributes: Attributes) -> bool:
    return "invis" in re.split(r"\W+", attributes.get("style", ""))


def _has_two_rings(name: str, own: Attributes) -> bool | None:
    """Whether a node is drawn as a state that accepts; None where it is not drawn as a state."""
    shape, rings = own.get("shape", "ellipse"), own.get("peripheries")
    if shape in _NOT_DRAWN or _is_invisible(own):
        return None
    is_double = shape == "doublecircle"
    if not (is_double or shape in _ONE_RING) or rings not in (None, "1", "2")[:: 1 + is_double]:
        said = "" if rings is None else f" and peripheries={rings!r:.40}"
        raise DatasetError(
            f"state {name!r:.40} has shape={shape!r:.40}{said}, expected doublecircle where it "
            "accepts, else circle"
        )
    return is_double or rings == "2"


def _symbols(edge: _Edge) -> list[str]:
    """The symbols of an edge's label; none where it has no label."""
    label = edge.attributes.get("label", "")
    odd = {x: y for x in ("xlabel", "headlabel", "taillabel") if (y := edge.attributes.get(x))}
    if (way := edge.attributes.get("dir", "forward")) != "forward":
        odd["dir"] = way
    what = f"line {edge.line}: the edge from {edge.source!r:.40} to {edge.target!r:.40}"
    for name, value in odd.items():
        raise DatasetError(
            f"{what} has {name}={value!r:.40}; write all its symbols in 'label', and it forward"
        )
    with refused_in(f"{what}: label {label!r:.60} "):
        return _symbols_of(label)


def _symbols_of(label: str) -> list[str]:
    """The symbols in a label: between commas and line ends, as drawings merge parallel edges.

    What stands behind a backslash is part of a symbol.
    """
    kept = list[str]()

    def read(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped is None:
            return html.unescape(found[0])
        if escaped in "NGETHL":
            raise DatasetError(f"has '\\{escaped}', which stands for a name; write the symbol")
        if escaped in 'nlr"':
            return escaped if escaped == '"' else "\n"
        kept.append(escaped)
        return chr(_KEPT + len(kept) - 1)

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
        if written.count(symbol) > 1:
            raise DatasetError(f"has {symbol!r:.40} twice; keep one")
        if _JOINED.fullmatch(symbol):
            raise DatasetError(
                f"has {symbol!r:.40}, which may stand for other symbols; write each, with commas "
                "between, and a backslash before every sign that is part of one"
            )
    places = "[\U000f0000-\U000fffff]"
    return [re.sub(places, lambda x: kept[ord(x[0]) - _KEPT], symbol) for symbol in written]
