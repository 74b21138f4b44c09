"""Automata as files write them: AT&T's text, drawings in DOT, and JSON of `seqcls model automaton`.

However one is written, its language is kept: ε and several ways to go on are made deterministic, a
way that is missing leads to where all is rejected, and the result is minimal.
"""

import html
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.errors import ConfigError, DatasetError
from seqcls.strings.alphabets import (
    alphabet_obstacle,
    compose,
    composing_obstacle,
    easily_confused,
    has_names,
)
from seqcls.strings.automata import MAX_STATES, StoredAutomaton
from seqcls.strings.datasets import MAX_TOKENS
from seqcls.tasks.automaton import Automaton, determinize, follow_silent, minimize
from seqcls.text import count
from sweeps.datasets.dot import Edge, read_graph
from sweeps.datasets.tables import (
    AUTOMATA,
    COMPRESSED,
    check_file,
    kind_of,
    lines_of,
    load_json,
    open_bytes,
    refused_in,
    whole_content,
)

MAX_BYTES = 200_000_000
"""A larger file is refused."""

MAX_HEAD = 1_000_000
"""Bytes of a JSON file in which it says that it is an automaton."""

MAX_STEPS = 4_000_000
"""Steps of making one deterministic: some seconds."""

EPSILON = frozenset(
    {"<eps>", "<epsilon>", "ε", "\N{GREEK LUNATE EPSILON SYMBOL}", "@0@", "@_epsilon_symbol_@"}
)
"""What a line may have for no symbol, in lowercase: as OpenFst, people and HFST write it."""

TABLES = (".syms", ".isyms", ".sym")
"""What the name of a table of symbols ends in, where an automaton's ends in .att."""

_MEANS_OTHER = re.compile(
    r"@_(?:identity|unknown)_symbol_@|@[pnrdcu]\.[^@]+@|<(?:sigma|rho|phi)>|\\?(?:var)?epsilon|eps|"
    r"\\?lambda"
)
"""What tools write in lowercase for other symbols, for conditions, or, unlike any here, for ε."""

_STATE = re.compile(r"0*([0-9]{1,18})", re.ASCII)
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{(?=.*"accepting").*"transitions"', re.DOTALL)


@dataclass
class _Arcs:
    """What a file says: from where to where each symbol leads; the empty text for ε."""

    start: int = 0
    accepting: set[int] = field(default_factory=set)
    sources: list[int] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    """Numbers of states by what the file calls them."""
    more_symbols: Sequence[str] = ()
    """Those that no line need have."""
    read_as: list[str] = field(default_factory=list)

    def state(self, name: str) -> int:
        """The number of a state, which has been checked."""
        number = self.states.setdefault(name, len(self.states))
        if number == MAX_STATES:
            raise DatasetError(f"more than {MAX_STATES:,} states")
        return number

    def add(self, source: int, symbol: str, target: int) -> None:
        """Keeps one arc."""
        self.sources.append(source)
        self.symbols.append(symbol)
        self.targets.append(target)


def is_automaton(path: Path) -> bool:
    """Whether a file is read as an automaton: by its name, or, of JSON, by what is in it."""
    if kind_of(path) != ".json":
        return kind_of(path) in AUTOMATA
    with suppress(DatasetError), open_bytes(path) as file:
        return _JSON.match(file.read(MAX_HEAD)) is not None
    return False


def read_automaton(path: Path, name: str) -> StoredAutomaton:
    """The automaton in a file.

    Raises:
        DatasetError: it cannot be read, or is none of a language over at most `MAX_TOKENS` symbols.
    """
    check_file(path, MAX_BYTES, "an automaton of so many is too large")
    arcs = {".att": _read_att, ".json": _read_json}.get(kind_of(path), _read_dot)(path)
    arcs.symbols = [_plain(symbol) for symbol in arcs.symbols]
    symbols = sorted({*arcs.symbols, *map(_plain, arcs.more_symbols)} - {""})
    _check_symbols(symbols)
    automaton = _minimal(arcs, symbols)
    if confused := easily_confused(symbols):
        arcs.read_as.append(confused)
    if not automaton.accepting.any():
        raise DatasetError("it accepts no string, so there is nothing to learn")
    if len(automaton.table) > MAX_STATES:
        raise DatasetError(f"more than {MAX_STATES:,} states, with that of missing transitions")
    alphabet = tuple(symbols) if has_names(symbols) else "".join(symbols)
    table = automaton.table.astype(np.uint16)
    return StoredAutomaton(name, alphabet, table, automaton.accepting, tuple(arcs.read_as))


def _plain(symbol: str) -> str:
    """A symbol in the form in which letters are kept; the empty text for ε."""
    return "" if symbol.lower() in EPSILON else compose(symbol)


def _check_symbols(symbols: Sequence[str]) -> None:
    if not symbols:
        raise DatasetError("no line has a symbol, so there are no strings")
    for symbol in symbols:
        # A lambda is a letter among others of Greek.
        is_silent = symbol in "λΛ" and not any(
            "\u0391" <= x <= "\u03c9" for x in {*symbols} - {symbol}
        )
        if is_silent or _MEANS_OTHER.fullmatch(symbol.lower()):
            raise DatasetError(
                f"symbol {symbol!r:.60} may stand for other symbols, or for ε; write those that "
                "are meant, and <eps> for ε"
            )
        if obstacle := alphabet_obstacle((symbol,), notation=True):
            raise DatasetError(f"symbol {symbol!r:.60}: {obstacle}")
    if obstacle := composing_obstacle(symbols):
        raise DatasetError(obstacle)
    if len(symbols) > MAX_TOKENS:
        raise DatasetError(f"{len(symbols):,} symbols, expected at most {MAX_TOKENS}")


def _minimal(arcs: _Arcs, symbols: Sequence[str]) -> Automaton:
    """The minimal automaton of the arcs, over these symbols."""
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    letters = np.array([numbers.get(symbol, -1) for symbol in arcs.symbols], dtype=np.int64)
    sink = len(arcs.states)
    table = np.full((sink + 1, len(symbols)), sink, dtype=np.int64)
    read = letters >= 0
    cells, targets = (np.array(arcs.sources)[read], letters[read]), np.array(arcs.targets)[read]
    table[cells] = targets
    several = (table[cells] != targets).any()
    if several or not read.all():
        return _deterministic(arcs, letters, len(symbols), several=bool(several))
    missing = int(np.count_nonzero(table[:-1] == sink))
    if missing:
        rejects = f"reject{'s' if missing == 1 else ''}"
        arcs.read_as.append(f"{count(missing, 'missing transition')} {rejects}")
    accepting = np.isin(np.arange(sink + 1), list(arcs.accepting))
    return minimize(table, accepting, arcs.start)


def _deterministic(
    arcs: _Arcs, letters: np.ndarray, num_letters: int, *, several: bool
) -> Automaton:
    pairs = list(zip(arcs.sources, letters.tolist(), arcs.targets, strict=True))
    silent: dict[int, set[int]] = {}
    for source, _, target in (pair for pair in pairs if pair[1] < 0):
        silent.setdefault(source, set()).add(target)
    ends = {source for source, letter, _ in pairs if letter >= 0} | arcs.accepting
    number = len(arcs.states)
    reached = follow_silent([int(state in ends) << state for state in range(number)], silent)
    moves: list[dict[int, int]] = [{} for _ in range(number)]
    for source, letter, target in (pair for pair in pairs if pair[1] >= 0):
        moves[source][letter] = moves[source].get(letter, 0) | reached[target]
    accepting = sum(1 << state for state in arcs.accepting)
    try:
        table, accepts = determinize(moves, reached[arcs.start], accepting, num_letters, MAX_STEPS)
    except ConfigError as error:
        raise DatasetError(f"nondeterministic, and {error}") from None
    causes = ["ε"] * bool(silent) + ["several transitions for one symbol"] * several
    arcs.read_as.append(
        f"nondeterministic ({' and '.join(causes)}): determinized from {number:,} states to "
        f"{len(table):,}"
    )
    return minimize(table, accepts)


# AT&T's text: `from to symbol symbol`, or `from to symbol`, a line; a final state alone.


def _read_att(path: Path) -> _Arcs:
    arcs = _Arcs()
    known: dict[str, int] = {}
    widths: set[int] = set()
    outputs: dict[tuple[str, str], int] = {}
    """The line where a symbol first has a fourth cell."""

    def state(cell: str) -> int:
        if cell not in known:
            if (number := _STATE.fullmatch(cell)) is None:
                raise DatasetError(f"state {cell!r:.40}, expected a whole number from 0")
            known[cell] = arcs.state(str(int(number[1])))
        return known[cell]

    for number, line in enumerate(lines_of(path), 1):
        with refused_in(f"line {number}: "):
            cells = _cells(line)
            if not cells:
                continue
            if (width := len(cells)) > 5:
                raise DatasetError(f"{width:,} cells, expected 1 to 5")
            widths.add(width)
            source = state(cells[0])
            if width < 3:
                arcs.accepting.add(source)
            else:
                arcs.add(source, cells[2], state(cells[1]))
            if width > 3:
                outputs.setdefault((cells[2], cells[3]), number)
            if width in (2, 5):
                _check_weight(cells[-1])
    if not known:
        raise DatasetError("no lines")
    first = next(iter(arcs.states))
    if first != "0":
        arcs.read_as.append(f"the start is state {first}, which the first line names")
    for (symbol, output), number in outputs.items():
        with refused_in(f"line {number}: "):
            # Where some lines have three cells, a fourth one is a weight, if it is a number.
            if 3 in widths and _number(output) is not None:
                _check_weight(output)
            elif _plain(output) != _plain(symbol):
                raise DatasetError(
                    f"symbol {symbol!r:.40} has the output {output!r:.40}: of a language both are "
                    "the same, and no weight stands there"
                )
    _name_symbols(arcs, path)
    return arcs


def _cells(line: str) -> list[str]:
    """What stands between tabs or spaces; nothing of a line of these alone."""
    text = line.rstrip("\r\n")
    cells = text.split("\t")
    if " " not in text and "" not in cells:
        return cells
    cells = [cell for cell in re.split("[ \t]+", text) if cell]
    # Where a symbol is missing, the others would be read as a shorter line.
    if len(cells) > 1 and re.search("\t *(?:\t|$)", text):
        raise DatasetError(f"{text!r:.60} has an empty cell at a tab; remove it")
    return cells


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _check_weight(text: str) -> None:
    if _number(text) != 0:
        raise DatasetError(f"weight {text!r:.40}, expected 0 or none: a language has no weights")


def _name_symbols(arcs: _Arcs, path: Path) -> None:
    """Calls symbols what a table beside the file calls them, where there is one; ε the empty text.

    Raises:
        DatasetError: the table has one of them neither as a name nor as a number, or is none.
    """
    symbols = [x for x in dict.fromkeys(arcs.symbols) if _plain(x)]
    names = {symbol: symbol for symbol in symbols}
    if tables := {table: _read_table(table) for table in _tables_beside(path)}:
        table, *others = tables
        numbers = tables[table]
        for other in others:
            if tables[other] != numbers:
                raise DatasetError(
                    f"tables {table.name!r:.60} and {other.name!r:.60} beside the file differ; "
                    "keep the one that is of it"
                )
        named = {str(number): name for name, number in numbers.items()}
        are_names = numbers.keys() >= names.keys()
        if not are_names:
            unknown = [x for x in symbols if x not in named]
            if unknown:
                unknown = [x for x in unknown if x not in numbers] or unknown
                raise DatasetError(
                    f"symbol {unknown[0]!r:.40} is neither a name nor a number of the table "
                    f"{table.name!r:.60} beside the file"
                )
            names = {symbol: named[symbol] for symbol in symbols}
        silent = {name for name, number in numbers.items() if number == 0}
        names.update({symbol: "" for symbol, name in names.items() if name in silent})
        arcs.more_symbols = [x for x in numbers if x not in silent]
        both = [x for x in symbols if are_names and named.get(x, x) != x]
        arcs.read_as.append(
            f"symbols are those of the table {table.name} beside it"
            + (f"; {both[0]!r} is a name there, and not its number" if both else "")
        )
    elif "0" in symbols and all(map(str.isdecimal, symbols)):
        arcs.read_as.append("'0' is a symbol, and not ε, since no table is beside the file")
    arcs.symbols = [names.get(symbol, "") for symbol in arcs.symbols]


def _tables_beside(path: Path) -> list[Path]:
    """The tables of an automaton's symbols: `lang.syms` of `lang.att`; `alph4.txt` of `04.x.att`,
    as MLRegTest has it.
    """
    packed = path.suffix.lower() in COMPRESSED
    stem = (path.with_suffix("") if packed else path).stem
    beside = [path.with_name(stem + x + y) for x in TABLES for y in ("", *COMPRESSED)]
    if size := re.match(r"0*([1-9][0-9]{0,3})\.", stem):
        beside.append(path.with_name(f"alph{size[1]}.txt"))
    return [table for table in beside if table.is_file()]


def _read_table(path: Path) -> dict[str, int]:
    """The number of each symbol, as OpenFst's tables have them; that of ε is 0."""
    numbers: dict[str, int] = {}
    names: dict[int, str] = {}
    for number, line in enumerate(lines_of(path), 1):
        cells = line.strip(" \t\r\n").replace("\t", " ").split()
        if not cells:
            continue
        with refused_in(f"table {path.name!r:.60}, line {number}: "):
            if len(cells) != 2 or not _STATE.fullmatch(cells[1]) or cells[0] in numbers:
                raise DatasetError(
                    f"{line.strip()!r:.60}, expected a symbol that is not yet in it, and its number"
                )
            symbol, place = cells[0], int(cells[1])
            if (called := names.setdefault(place, symbol)) != symbol:
                raise DatasetError(
                    f"{symbol!r:.40} has the number {place}, which {called!r:.40} has; each symbol "
                    "has one of its own"
                )
            numbers[symbol] = place
            if len(numbers) > MAX_STATES:
                raise DatasetError(f"more than {MAX_STATES:,} symbols")
    return numbers


# What `seqcls model automaton` prints.


def _read_json(path: Path) -> _Arcs:
    found = load_json("the file", whole_content(path, MAX_BYTES))
    kinds = {"alphabet": list, "start": int, "accepting": list, "transitions": list}
    for name, kind in kinds.items():
        if type(found.get(name)) is not kind:
            raise DatasetError(
                f"{name} is {found.get(name)!r:.60}, expected what `seqcls model automaton --json` "
                "writes"
            )
    rows, alphabet = found["transitions"], found["alphabet"]
    if not all(isinstance(token, str) for token in alphabet) or len({*alphabet}) < len(alphabet):
        raise DatasetError(f"alphabet is {alphabet!r:.60}, expected a list of distinct texts")
    if len(rows) > MAX_STATES:
        raise DatasetError(f"{len(rows):,} states, expected at most {MAX_STATES:,}")
    arcs = _Arcs(more_symbols=alphabet, states={str(number): number for number in range(len(rows))})

    def state(value: Any, what: str) -> int:
        if type(value) is not int or not 0 <= value < len(rows):
            raise DatasetError(f"{what} is {value!r:.40}, expected one of {len(rows):,} states")
        return int(value)

    arcs.start = state(found["start"], "start")
    for value in found["accepting"]:
        if state(value, "a state of accepting") in arcs.accepting:
            raise DatasetError(f"accepting has the state {value} twice; keep one")
        arcs.accepting.add(value)
    for source, row in enumerate(rows):
        if not isinstance(row, dict):
            raise DatasetError(f"transitions of state {source} are {row!r:.60}, expected an object")
        for token, target in row.items():
            if token not in alphabet:
                raise DatasetError(
                    f"state {source} has the token {token!r:.40}, no one of alphabet"
                )
            arcs.add(source, token, state(target, f"transition {token!r:.40} of state {source}"))
    return arcs


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


def _read_dot(path: Path) -> _Arcs:
    """A drawing: states with two rings accept, an arrow without a label leads to the start."""
    graph = read_graph("".join(lines_of(path)))
    arcs, marks, starts = _Arcs(), dict[str, int](), list[str]()
    said = [(edge, _symbols(edge)) for edge in graph.edges if not _is_invisible(edge.attributes)]
    marks = {edge.source: edge.line for edge, symbols in said if not symbols}
    for name, line in marks.items():
        own = graph.nodes[name]
        is_mark = own.get("shape") in _NOT_DRAWN or _is_invisible(own) or name == "start"
        if not is_mark or _has_two_rings(name, own):
            raise DatasetError(f"line {line}: an edge from {name!r:.40} has no label")
    pairs = set[tuple[str, str]]()
    for edge, symbols in said:
        source, target, line = edge.source, edge.target, edge.line
        for name in (source, target):
            own = graph.nodes[name]
            is_hidden = own.get("shape") in _NOT_DRAWN or _is_invisible(own)
            if (name in marks or is_hidden) and not (name == source and not symbols):
                raise DatasetError(
                    f"line {line}: {name!r:.40} is not drawn as a state, so no edge with a label "
                    "leaves it, and none leads to it"
                )
        if not symbols:
            starts.append(target)
            continue
        if graph.is_strict and (source, target) in pairs:
            raise DatasetError(
                f"line {line}: a second edge from {source!r:.40} to {target!r:.40}, which in a "
                "strict graph replaces the first; remove 'strict'"
            )
        pairs.add((source, target))
        ends = arcs.state(source), arcs.state(target)
        for symbol in symbols:
            arcs.add(ends[0], symbol, ends[1])
    accepting = [name for name, own in graph.nodes.items() if _has_two_rings(name, own)]
    for state in [*starts, *accepting]:
        if state not in arcs.states:
            raise DatasetError(f"state {state!r:.40} has no transition, so nobody knows it")
    if len(starts) != 1:
        raise DatasetError(
            f"{len(starts)} arrows from start, expected one: an edge without a label from a node "
            "that is not drawn, as start [shape=point]"
        )
    arcs.start = arcs.states[starts[0]]
    arcs.accepting = {arcs.states[state] for state in accepting}
    return arcs


def _is_invisible(attributes: Mapping[str, str]) -> bool:
    return "invis" in re.split(r"\W+", attributes.get("style", ""))


def _has_two_rings(name: str, own: Mapping[str, str]) -> bool:
    """Whether a node is drawn as a state that accepts."""
    shape, rings = own.get("shape", "ellipse"), own.get("peripheries")
    if shape in _NOT_DRAWN or _is_invisible(own):
        return False
    if shape != "doublecircle" and shape not in _ONE_RING:
        raise DatasetError(
            f"state {name!r:.40} has shape={shape!r:.40}, expected doublecircle where it accepts, "
            "else circle"
        )
    if rings not in (None, "1", "2") or (rings == "1" and shape == "doublecircle"):
        raise DatasetError(
            f"state {name!r:.40} has shape={shape} and peripheries={rings!r:.40}, expected 2 where "
            "it accepts, else 1"
        )
    return shape == "doublecircle" or rings == "2"


def _symbols(edge: Edge) -> list[str]:
    """The symbols of an edge's label; none where it has no label."""
    what = f"line {edge.line}: the edge from {edge.source!r:.40} to {edge.target!r:.40}"
    for name in ("xlabel", "headlabel", "taillabel"):
        if edge.attributes.get(name):
            raise DatasetError(f"{what} has {name!r}; write all its symbols in 'label'")
    if edge.attributes.get("dir", "forward") != "forward":
        raise DatasetError(f"{what} has dir={edge.attributes['dir']!r:.40}; write it forward")
    label = edge.attributes.get("label", "")
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
        if not symbol or written.count(symbol) > 1:
            raise DatasetError(
                f"has {symbol!r:.40} twice; keep one"
                if symbol
                else "has nothing between two commas; write the symbol ',' as '\\,'"
            )
        if _JOINED.fullmatch(symbol):
            raise DatasetError(
                f"has {symbol!r:.40}, which may stand for other symbols; write each, with commas "
                "between, and a backslash before every sign that is part of one"
            )
    return [
        re.sub("[\U000f0000-\U000fffff]", lambda x: kept[ord(x[0]) - _KEPT], x) for x in written
    ]
