"""Automata as files write them: AT&T's text, drawings in DOT, and JSON of `seqcls model automaton`.

However one is written, its language is kept: ε and several ways to go on are made deterministic, a
way that is missing leads to where all is rejected, and the result is minimal.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

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
from seqcls.text import count, in_one_line
from sweeps.datasets.dot import drawn_arcs
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

# Both keys near the beginning tell it from rows of JSON.
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{(?=.*"accepting").*"transitions"', re.DOTALL)


@dataclass
class _Arcs:
    """What a file says: from where to where each symbol leads; the empty text for ε."""

    start: int = 0
    accepting: set[int] = field(default_factory=set)
    arcs: list[tuple[int, str, int]] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    """Numbers of states by what the file calls them."""
    more_symbols: Sequence[str] = ()
    """Those that no line need have."""
    read_as: list[str] = field(default_factory=list)

    def state(self, name: str) -> int:
        """The number of a state, which is new or known."""
        number = self.states.setdefault(name, len(self.states))
        # Counted as they come, so that a huge file is refused early.
        if number == MAX_STATES:
            raise DatasetError(f"more than {MAX_STATES:,} states")
        return number


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
    check_file(path, MAX_BYTES)
    found = {".att": _read_att, ".json": _read_json}.get(kind_of(path), _read_dot)(path)
    plain = {symbol: _plain(symbol) for _, symbol, _ in found.arcs}
    symbols = sorted({*plain.values(), *map(_plain, found.more_symbols)} - {""})
    _check_symbols(symbols)
    numbers = {symbol: symbols.index(form) if form else -1 for symbol, form in plain.items()}
    automaton = _minimal(found, [(x, numbers[y], z) for x, y, z in found.arcs], len(symbols))
    if confused := easily_confused(symbols):
        found.read_as.append(confused)
    if not automaton.accepting.any():
        raise DatasetError("it accepts no string, so there is nothing to learn")
    if len(automaton.table) > MAX_STATES:
        raise DatasetError(f"more than {MAX_STATES:,} states, with that of missing transitions")
    alphabet = tuple(symbols) if has_names(symbols) else "".join(symbols)
    table = automaton.table.astype(np.uint16)
    return StoredAutomaton(name, alphabet, table, automaton.accepting, tuple(found.read_as))


def _plain(symbol: str) -> str:
    """A symbol in the form in which letters are kept; the empty text for ε."""
    return "" if symbol.lower() in EPSILON else compose(symbol)


def _check_symbols(symbols: Sequence[str]) -> None:
    if not 1 <= len(symbols) <= MAX_TOKENS:
        raise DatasetError(
            f"{len(symbols):,} symbols, expected at most {MAX_TOKENS}"
            if symbols
            else "no line has a symbol, so there are no strings"
        )
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


def _minimal(found: _Arcs, arcs: Sequence[tuple[int, int, int]], num_letters: int) -> Automaton:
    """The minimal automaton of arcs: from, letter or -1 for ε, to."""
    sources, letters, targets = np.array(arcs, dtype=np.int64).reshape(-1, 3).T
    number, read = len(found.states), letters >= 0
    # One state more rejects all: every missing transition leads there.
    table = np.full((number + 1, num_letters), number, dtype=np.int64)
    cells = sources[read], letters[read]
    table[cells] = targets[read]
    # The last of several arcs has the cell, so that any other one shows as a difference.
    several = bool((table[cells] != targets[read]).any())
    if read.all() and not several:
        if missing := int(np.count_nonzero(table[:-1] == number)):
            rejects = "rejects" if missing == 1 else "reject"
            found.read_as.append(f"{count(missing, 'missing transition')} {rejects}")
        accepting = np.isin(np.arange(number + 1), list(found.accepting))
        return minimize(table, accepting, found.start)
    silent: dict[int, set[int]] = defaultdict(set)
    for source, letter, target in arcs:
        silent[source] |= {target} if letter < 0 else set()
    ends = {*sources[read].tolist(), *found.accepting}
    # A set of states is one whole number, a bit for each; dead ends of silent arcs have none.
    reached = follow_silent([int(state in ends) << state for state in range(number)], silent)
    moves: list[dict[int, int]] = [{} for _ in range(number)]
    for source, letter, target in arcs:
        if letter >= 0:
            moves[source][letter] = moves[source].get(letter, 0) | reached[target]
    final = sum(1 << state for state in found.accepting)
    try:
        table, accepts = determinize(moves, reached[found.start], final, num_letters, MAX_STEPS)
    except ConfigError as error:
        raise DatasetError(f"nondeterministic, and {error}") from None
    causes = ["ε"] * (not read.all()) + ["several transitions for one symbol"] * several
    found.read_as.append(
        f"nondeterministic ({' and '.join(causes)}): determinized from {number:,} states to "
        f"{len(table):,}"
    )
    return minimize(table, accepts)


# AT&T's text: `from to symbol symbol`, or `from to symbol`, a line; a final state alone.


_SPACE, _NUMBER = r"(?: *\t *| +)", r"0*([0-9]{1,18})"
_ZERO = rf"(?:{_SPACE}[-+]?0*\.?0*(?:e[-+]?\d+)?)?"
_FINAL = re.compile(rf" *{_NUMBER}{_ZERO}\s*", re.ASCII)
_ARC = re.compile(rf" *{_NUMBER}{_SPACE}{_NUMBER}{_SPACE}(\S+)(?:{_SPACE}(\S+){_ZERO})?[ \r\n]*")
_SYMBOL = re.compile(rf" *(\S+){_SPACE}{_NUMBER}\s*")


def _read_att(path: Path) -> _Arcs:
    found = _Arcs()
    for number, line in enumerate(lines_of(path), 1):
        with refused_in(f"line {number}: "):
            if final := _FINAL.fullmatch(line):
                found.accepting.add(found.state(final[1]))
            elif arc := _ARC.fullmatch(line):
                source, target, symbol, output = arc.groups()
                found.arcs.append((found.state(source), symbol, found.state(target)))
                if _plain(symbol) != _plain(output or symbol):
                    raise DatasetError(
                        f"symbol {symbol!r:.40} has the output {output!r:.40}: of a language both "
                        "are the same, and no weight stands there"
                    )
            elif line.strip():
                raise DatasetError(
                    f"{line.rstrip()!r:.60}, expected a transition, as '0 1 a a', or a final "
                    "state, as '1', with one tab or spaces between, and no weight but 0"
                )
    if not found.states:
        raise DatasetError("no lines")
    # In AT&T's format the start is the first state that is named.
    if (first := next(iter(found.states))) != "0":
        found.read_as.append(f"the start is state {first}, which the first line names")
    _name_symbols(found, path)
    return found


def _name_symbols(found: _Arcs, path: Path) -> None:
    """Calls symbols what a table beside the file calls them, where there is one; ε the empty text.

    Raises:
        DatasetError: the table has one of them neither as a name nor as a number, or is none.
    """
    symbols = [x for x in dict.fromkeys(symbol for _, symbol, _ in found.arcs) if _plain(x)]
    if (table := next(_tables_beside(path), None)) is None:
        if "0" in symbols and all(map(str.isdecimal, symbols)):
            found.read_as.append("'0' is a symbol, and not ε, since no table is beside the file")
        return
    numbers = _read_table(table)
    names, by_number = {x: x for x in numbers}, {str(number): x for x, number in numbers.items()}
    if not {*symbols} <= names.keys() and {*symbols} <= by_number.keys():
        names = by_number
    if unknown := [x for x in symbols if x not in names]:
        raise DatasetError(
            f"symbol {unknown[0]!r:.40} is neither a name nor a number of the table "
            f"{table.name!r:.60} beside the file"
        )
    found.more_symbols = [name for name, number in numbers.items() if number]
    found.arcs = [
        (x, names[y] if numbers.get(names.get(y, "")) else "", z) for x, y, z in found.arcs
    ]
    found.read_as.append(f"symbols are those of the table {table.name} beside it")


def _tables_beside(path: Path) -> Iterator[Path]:
    """The tables of an automaton's symbols: `lang.syms` of `lang.att`; `alph4.txt` of `04.x.att`,
    as MLRegTest has it.
    """
    stem = Path(re.sub(r"(\.gz|\.bz2|\.xz)$", "", path.name)).stem
    beside = [stem + x + y for x in TABLES for y in ("", *COMPRESSED)]
    if size := re.match(r"0*([1-9][0-9]{0,3})\.", stem):
        beside.append(f"alph{size[1]}.txt")
    return filter(Path.is_file, map(path.with_name, beside))


def _read_table(path: Path) -> dict[str, int]:
    """The number of each symbol, as OpenFst's tables have them; that of ε is 0."""
    numbers: dict[str, int] = {}
    for place, line in enumerate(filter(str.strip, lines_of(path)), 1):
        found = _SYMBOL.fullmatch(line)
        if found is None or found[1] in numbers or int(found[2]) in numbers.values():
            raise DatasetError(
                f"table {path.name!r:.60}, line {place}: {line.strip()!r:.60}, expected a symbol "
                "and its number, each of which is not yet in it"
            )
        numbers[found[1]] = int(found[2])
    return numbers


# What `seqcls model automaton` prints, and drawings.


class _Learned(BaseModel):
    model_config = ConfigDict(strict=True)

    alphabet: list[str]
    start: int
    accepting: list[int]
    transitions: list[dict[str, int]]


def _read_json(path: Path) -> _Arcs:
    try:
        learned = _Learned.model_validate(load_json("the file", whole_content(path)))
    except ValidationError as error:
        raise DatasetError(
            f"{in_one_line(_Learned, error)[:200]}; as `seqcls model automaton --json` writes it"
        ) from None
    rows, alphabet = learned.transitions, learned.alphabet
    arcs = [(x, token, target) for x, row in enumerate(rows) for token, target in row.items()]
    states = {learned.start, *learned.accepting, *(target for *_, target in arcs)}
    if unknown := states - {*range(len(rows))}:
        raise DatasetError(f"state {min(unknown)} is not one of the {len(rows):,} in 'transitions'")
    if len({*alphabet}) < len(alphabet):
        raise DatasetError(f"alphabet is {alphabet!r:.60}, expected a list of distinct texts")
    if new := {token for _, token, _ in arcs} - {*alphabet}:
        raise DatasetError(f"token {min(new)!r:.40} is not in 'alphabet'")
    found = _Arcs(learned.start, {*learned.accepting}, arcs, more_symbols=alphabet)
    for number in range(len(rows)):
        found.state(str(number))
    return found


def _read_dot(path: Path) -> _Arcs:
    found, drawn = _Arcs(), drawn_arcs("".join(lines_of(path)))
    for source, symbol, target in drawn.arcs:
        found.arcs.append((found.state(source), symbol, found.state(target)))
    for state in [drawn.start, *drawn.accepting]:
        if state not in found.states:
            raise DatasetError(f"state {state!r:.40} is unknown: it has no transition")
    found.start = found.states[drawn.start]
    found.accepting = {found.states[state] for state in drawn.accepting}
    return found
