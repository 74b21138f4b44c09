"""Automata as files write them: AT&T's text, and what `seqcls automaton` prints as JSON and DOT.

However one is written, its language is kept: ε and several ways to go on are made deterministic, a
way that is missing leads to where all is rejected, and the result is minimal.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.errors import ConfigError, DatasetError
from seqcls.strings.alphabets import alphabet_obstacle, has_names
from seqcls.strings.automata import MAX_STATES, StoredAutomaton
from seqcls.strings.datasets import MAX_TOKENS
from seqcls.tasks.automaton import Automaton, determinize, follow_silent, minimize
from sweeps.datasets.formats import AUTOMATA, load_json
from sweeps.datasets.lines import compression_of, ending_of, first_bytes, lines_of, whole_content

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

ANY_SYMBOL = ("@_identity_symbol_@", "@_unknown_symbol_@")
"""What HFST writes for all symbols that no line has."""

_STATE = re.compile(r"0*([0-9]{1,18})", re.ASCII)
_JSON = re.compile(rb'\s*\{(?=.*"accepting").*"transitions"', re.DOTALL)


@dataclass
class _Arcs:
    """What a file says: from where to where each symbol leads; None for ε."""

    start: int = 0
    accepting: set[int] = field(default_factory=set)
    sources: list[int] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    """Numbers of states by what the file calls them."""
    more_symbols: Sequence[str] = ()
    """Those that no line need have."""
    epsilon: frozenset[str] = EPSILON
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
    ending = _ending(path)
    if ending == ".json":
        return _JSON.match(first_bytes(path, MAX_HEAD)) is not None
    return ending in AUTOMATA


def _ending(path: Path) -> str:
    ending = ending_of(path.name)
    return ending.removesuffix(compression_of(ending))


def read_automaton(path: Path, name: str) -> StoredAutomaton:
    """The automaton in a file.

    Raises:
        DatasetError: it cannot be read, or is none of a language over at most `MAX_TOKENS` symbols.
    """
    try:
        if not path.is_file():
            raise DatasetError(f"no file {str(path)!r:.200}")
        if path.stat().st_size > MAX_BYTES:
            raise DatasetError(
                f"more than {MAX_BYTES:,} bytes; an automaton of so many is too large"
            )
    except OSError as error:
        raise DatasetError(f"cannot be read: {error.strerror or error}") from None
    arcs = {".att": _read_att, ".json": _read_json}.get(_ending(path), _read_dot)(path)
    symbols = sorted({*arcs.symbols, *arcs.more_symbols} - {""})
    _check_symbols(symbols)
    automaton = _minimal(arcs, symbols)
    if not automaton.accepting.any():
        raise DatasetError("it accepts no string, so there is nothing to learn")
    alphabet = tuple(symbols) if has_names(symbols) else "".join(symbols)
    table = automaton.table.astype(np.uint16)
    return StoredAutomaton(name, alphabet, table, automaton.accepting, tuple(arcs.read_as))


def _check_symbols(symbols: Sequence[str]) -> None:
    if not symbols:
        raise DatasetError("no line has a symbol, so there are no strings")
    for symbol in symbols:
        if symbol.lower() in ANY_SYMBOL:
            raise DatasetError(f"symbol {symbol!r} means any other; write those that are meant")
        if obstacle := alphabet_obstacle((symbol,), notation=True):
            raise DatasetError(f"symbol {symbol!r:.60}: {obstacle}")
    if len(symbols) > MAX_TOKENS:
        raise DatasetError(f"{len(symbols):,} symbols, expected at most {MAX_TOKENS}")


def _minimal(arcs: _Arcs, symbols: Sequence[str]) -> Automaton:
    """The minimal automaton of the arcs, over these symbols."""
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    letters = np.array([numbers.get(symbol, -1) for symbol in arcs.symbols], dtype=np.int64)
    sources, targets = (
        np.array(arcs.sources, dtype=np.int64),
        np.array(arcs.targets, dtype=np.int64),
    )
    sink = len(arcs.states)
    table = np.full((sink + 1, len(symbols)), sink, dtype=np.int64)
    read = letters >= 0
    table[sources[read], letters[read]] = targets[read]
    several = (table[sources[read], letters[read]] != targets[read]).any()
    if several or not read.all():
        return _deterministic(arcs, letters, len(symbols), several=bool(several))
    missing = np.count_nonzero(table[:-1] == sink)
    if missing:
        arcs.read_as.append(f"{missing:,} missing transitions reject")
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
        try:
            cells = _cells(line)
            width = len(cells)
            if not 1 <= width <= 5:
                if width:
                    raise DatasetError(f"{width:,} cells, expected 1 to 5")
                continue
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
        except DatasetError as error:
            raise DatasetError(f"line {number}: {error}") from None
    if not known:
        raise DatasetError("no lines")
    for (symbol, output), number in outputs.items():
        try:
            # Where some lines have three cells, a fourth one is a weight, if it is a number.
            if 3 in widths and _number(output) is not None:
                _check_weight(output)
            elif output != symbol:
                raise DatasetError(
                    f"symbol {symbol!r:.40} has the output {output!r:.40}: of a language both are "
                    "the same, and no weight stands there"
                )
        except DatasetError as error:
            raise DatasetError(f"line {number}: {error}") from None
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
    symbols = [x for x in dict.fromkeys(arcs.symbols) if x.lower() not in EPSILON]
    names = {symbol: symbol for symbol in symbols}
    if (table := _table_beside(path)) is not None:
        numbers = _read_table(table)
        if not numbers.keys() >= names.keys():
            named = {str(number): name for name, number in numbers.items()}
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
        arcs.more_symbols = [x for x in numbers if x not in silent and x.lower() not in EPSILON]
        arcs.read_as.append(f"symbols are those of the table {table.name} beside it")
    arcs.symbols = [names.get(symbol, "") for symbol in arcs.symbols]


def _table_beside(path: Path) -> Path | None:
    """The table of an automaton's symbols: `lang.syms` of `lang.att`; `alph4.txt` of `04.x.att`, as
    MLRegTest has it.
    """
    stem = path.name.removesuffix(compression_of(path.name.lower())).rpartition(".")[0]
    beside = [path.with_name(stem + ending) for ending in TABLES]
    if size := re.match(r"0*([1-9][0-9]{0,3})\.", stem):
        beside.append(path.with_name(f"alph{size[1]}.txt"))
    return next((table for table in beside if table.is_file()), None)


def _read_table(path: Path) -> dict[str, int]:
    """The number of each symbol, as OpenFst's tables have them; that of ε is 0."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines_of(path), 1):
        cells = line.strip(" \t\r\n").replace("\t", " ").split()
        if not cells:
            continue
        if len(cells) != 2 or not _STATE.fullmatch(cells[1]) or cells[0] in numbers:
            raise DatasetError(
                f"table {path.name!r:.60}, line {number}: {line.strip()!r:.60}, expected a symbol "
                "that is not yet in it, and its number"
            )
        numbers[cells[0]] = int(cells[1])
        if len(numbers) > MAX_STATES:
            raise DatasetError(f"table {path.name!r:.60}: more than {MAX_STATES:,} symbols")
    return numbers


# What `seqcls automaton` prints.


def _read_json(path: Path) -> _Arcs:
    try:
        found = load_json("the file", whole_content(path, MAX_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DatasetError(f"no text in UTF-8 (byte {error.start + 1})") from None
    kinds = {"alphabet": list, "start": int, "accepting": list, "transitions": list}
    for name, kind in kinds.items():
        if type(found.get(name)) is not kind:
            raise DatasetError(
                f"{name} is {found.get(name)!r:.60}, expected what `seqcls automaton --json` writes"
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
    arcs.accepting = {state(value, "a state of accepting") for value in found["accepting"]}
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


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ID = rf"(?:{_QUOTED}|[\w.]+)"
_GRAPH = re.compile(rf"\s*digraph(?:\s+{_ID})?\s*\{{")
_STATEMENT = re.compile(
    rf"\s*({_ID})(?:\s*->\s*({_ID})|\s*=\s*{_ID})?\s*(\[(?:[^\]\"]|{_QUOTED})*\])?\s*;?"
)
_ATTRIBUTE = re.compile(rf"(\w+)\s*=\s*({_ID})")


_END = re.compile(r"\s*\}\s*\Z")


def _read_dot(path: Path) -> _Arcs:
    text = "".join(lines_of(path))
    if (graph := _GRAPH.match(text)) is None:
        raise DatasetError("no graph: expected 'digraph {', as `seqcls automaton --dot` writes")
    arcs, place = _Arcs(), graph.end()
    starts, accepting = list[str](), list[str]()
    while not _END.match(text, place):
        statement = _STATEMENT.match(text, place)
        if statement is None:
            raise _refusal_in(text, place, f"{text[place:].strip()[:40]!r}, expected")
        source, target, written = statement.groups()
        said = dict(_ATTRIBUTE.findall(written or ""))
        if target is None:
            if said.get("shape") == "doublecircle":
                accepting.append(source)
        elif source == "start":
            starts.append(target)
        elif not (_STATE.fullmatch(source) and _STATE.fullmatch(target) and "label" in said):
            shown = f"{statement[0].strip()!r:.60}, expected two numbers of states and a label,"
            raise _refusal_in(text, place, shown)
        else:
            ends = arcs.state(source), arcs.state(target)
            label = said["label"][1:-1] if said["label"].startswith('"') else said["label"]
            for token in re.sub(r"\\(.)", r"\1", label).split(", "):
                arcs.add(ends[0], token, ends[1])
        place = statement.end()
    for state in [*starts, *accepting]:
        if state not in arcs.states:
            raise DatasetError(f"state {state!r:.40} has no transition, so nobody knows it")
    if len(starts) != 1:
        raise DatasetError(f"{len(starts)} arrows from start, expected one")
    arcs.start = arcs.states[starts[0]]
    arcs.accepting = {arcs.states[state] for state in accepting}
    return arcs


def _refusal_in(text: str, place: int, said: str) -> DatasetError:
    """The refusal of what stands at a place of a graph."""
    start = len(text) - len(text[place:].lstrip())
    line = text.count("\n", 0, start) + 1
    return DatasetError(f"line {line}: {said} as `seqcls automaton --dot` writes it")
