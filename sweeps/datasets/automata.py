"""Reading automata from files: AT&T's text, DOT, and the JSON of `seqcls model automaton`.

The result is the minimal complete deterministic automaton of the file's language: ε and
nondeterminism are removed, and missing transitions reject.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
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
from sweeps.datasets.dot import Arcs, drawn_arcs
from sweeps.datasets.tables import (
    AUTOMATA,
    COMPRESSED,
    check_file,
    kind_of,
    lines_of,
    load_json,
    numbered_lines,
    open_bytes,
    refused_in,
    whole_content,
)

MAX_BYTES = 200_000_000
"""The maximum size of a file."""

MAX_HEAD = 1_000_000
"""Bytes at the beginning of a JSON file that are searched for the keys of an automaton."""

MAX_STEPS = 4_000_000
"""The maximum of steps to make an automaton deterministic: some seconds."""

EPSILON = frozenset(
    {"<eps>", "<epsilon>", "ε", "\N{GREEK LUNATE EPSILON SYMBOL}", "@0@", "@_epsilon_symbol_@"}
)
"""Spellings of the empty symbol in lowercase, by OpenFst, people and HFST."""

TABLES = (".syms", ".isyms", ".sym")
"""Endings of the name of a symbol table beside an automaton's file .att."""

_MEANS_OTHER = re.compile(
    r"@_(?:identity|unknown)_symbol_@|@[pnrdcu]\.[^@]+@|<(?:sigma|rho|phi)>|\\?(?:var)?epsilon|eps|"
    r"\\?lambda"
)
"""Symbols that in some tools, in lowercase, denote other symbols, conditions, or ε."""

# Both keys near the beginning distinguish it from rows of JSON.
_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{(?=.*"accepting").*"transitions"', re.DOTALL)


def is_automaton(path: Path) -> bool:
    """True if a file is read as an automaton: by its name, or for JSON by its content."""
    if kind_of(path) != ".json":
        return kind_of(path) in AUTOMATA
    with suppress(DatasetError), open_bytes(path) as file:
        return _JSON.match(file.read(MAX_HEAD)) is not None
    return False


def read_automaton(path: Path, name: str) -> StoredAutomaton:
    """Reads the automaton in a file.

    Raises:
        DatasetError: it cannot be read, or has more than `MAX_TOKENS` symbols.
    """
    check_file(path, MAX_BYTES)
    found = {".att": _read_att, ".json": _read_json}.get(kind_of(path), _read_dot)(path)
    plain = {symbol: _plain(symbol) for _, symbol, _ in found.arcs}
    symbols = sorted({*plain.values(), *map(_plain, found.symbols)} - {""})
    _check_symbols(symbols)
    numbers = {symbol: symbols.index(form) if form else -1 for symbol, form in plain.items()}
    automaton, how = _minimal(found, numbers, len(symbols))
    read_as = tuple(filter(None, (*found.read_as, how, easily_confused(symbols))))
    if not automaton.accepting.any():
        raise DatasetError("it accepts no string, so there is nothing to learn")
    alphabet = tuple(symbols) if has_names(symbols) else "".join(symbols)
    table = automaton.table.astype(np.uint16)
    return StoredAutomaton(name, alphabet, table, automaton.accepting, read_as)


def _plain(symbol: str) -> str:
    """A symbol in the normal form of letters; the empty text for ε."""
    return "" if symbol.lower() in EPSILON else compose(symbol)


def _check_symbols(symbols: Sequence[str]) -> None:
    if not 1 <= len(symbols) <= MAX_TOKENS:
        raise DatasetError(
            f"{len(symbols):,} symbols, expected at most {MAX_TOKENS}"
            if symbols
            else "no line has a symbol, so there are no strings"
        )
    for symbol in symbols:
        # Lambda is a letter among other Greek ones.
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


def _minimal(found: Arcs, letters: Mapping[str, int], num_letters: int) -> tuple[Automaton, str]:
    """The minimal automaton of these arcs, and a clause on their conversion.

    Args:
        letters: the number of each symbol; -1 for ε.
    """
    ends = (state for source, _, target in found.arcs for state in (source, target))
    states = {x: n for n, x in enumerate(dict.fromkeys([found.start, *ends, *found.accepting]))}
    if (number := len(states)) > MAX_STATES:
        raise DatasetError(f"more than {MAX_STATES:,} states")
    silent: dict[int, set[int]] = defaultdict(set)
    targets: dict[tuple[int, int], set[int]] = defaultdict(set)
    for source, symbol, target in found.arcs:
        if (letter := letters[symbol]) < 0:
            silent[states[source]].add(states[target])
        else:
            targets[states[source], letter].add(states[target])
    accepting = {states[state] for state in found.accepting}
    # Sets of states are bit masks; states without other arcs that do not accept are left out.
    useful = {state for state, _ in targets} | accepting
    reached = follow_silent([int(state in useful) << state for state in range(number)], silent)
    moves: list[dict[int, int]] = [{} for _ in range(number)]
    for (state, letter), several in targets.items():
        moves[state][letter] = reduce(or_, (reached[target] for target in several))
    final = sum(1 << state for state in accepting)
    try:
        made = determinize(moves, reached[0], final, num_letters, MAX_STEPS)
    except ConfigError as error:
        raise DatasetError(f"made deterministic and complete, {error}") from None
    causes = ["ε"] * bool(silent)
    causes += ["several transitions for one symbol"] * any(len(x) > 1 for x in targets.values())
    how = ""
    if causes:
        sizes = f"determinized from {number:,} states to {len(made.table):,}"
        how = f"nondeterministic ({' and '.join(causes)}): {sizes}"
    elif missing := number * num_letters - len(targets):
        how = f"{count(missing, 'missing transition')} reject{'s' * (missing == 1)}"
    return minimize(made.table, made.accepting), how


# AT&T's text: `from to symbol symbol`, or `from to symbol`, a line; a final state alone.


_SPACE, _NUMBER = r"(?: *\t *| +)", r"0*([0-9]{1,18})"
_ZERO = rf"(?:{_SPACE}[-+]?0*\.?0*(?:e[-+]?\d+)?)?"
_FINAL = re.compile(rf" *{_NUMBER}{_ZERO}\s*", re.ASCII)
_ARC = re.compile(rf" *{_NUMBER}{_SPACE}{_NUMBER}{_SPACE}(\S+)(?:{_SPACE}(\S+){_ZERO})?[ \r\n]*")
_SYMBOL = re.compile(rf" *(\S+){_SPACE}{_NUMBER}\s*")


def _read_att(path: Path) -> Arcs:
    start, accepting, arcs = "", list[str](), list[tuple[str, str, str]]()
    for place, line in numbered_lines(path):
        with refused_in(f"{place}: "):
            if final := _FINAL.fullmatch(line):
                accepting.append(final[1])
            elif arc := _ARC.fullmatch(line):
                source, target, symbol, output = arc.groups()
                arcs.append((source, symbol, target))
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
            if found := final or arc:
                # In AT&T's format the first state that is named is the start.
                start = start or found[1]
    if not start:
        raise DatasetError("no lines")
    read_as = () if start == "0" else (f"the start is state {start}, which the first line names",)
    return _name_symbols(Arcs(start, accepting, arcs, (), read_as), path)


def _name_symbols(found: Arcs, path: Path) -> Arcs:
    """Replaces symbols by their names in a table beside the file, if there is one; ε by "".

    Raises:
        DatasetError: the table cannot be read, or has a symbol neither as name nor as number.
    """
    symbols = [x for x in dict.fromkeys(symbol for _, symbol, _ in found.arcs) if _plain(x)]
    if (table := next(_tables_beside(path), None)) is None:
        if "0" in symbols and all(map(str.isdecimal, symbols)):
            note = "'0' is a symbol, and not ε, since no table is beside the file"
            return found._replace(read_as=(*found.read_as, note))
        return found
    numbers = _read_table(table)
    names, by_number = {x: x for x in numbers}, {str(number): x for x, number in numbers.items()}
    if not {*symbols} <= names.keys() and {*symbols} <= by_number.keys():
        names = by_number
    if unknown := [x for x in symbols if x not in names]:
        raise DatasetError(
            f"symbol {unknown[0]!r:.40} is neither a name nor a number of the table "
            f"{table.name!r:.60} beside the file"
        )
    return found._replace(
        arcs=[(x, names[y] if numbers.get(names.get(y, "")) else "", z) for x, y, z in found.arcs],
        symbols=[name for name, number in numbers.items() if number],
        read_as=(*found.read_as, f"symbols are those of the table {table.name} beside it"),
    )


def _tables_beside(path: Path) -> Iterator[Path]:
    """The existing symbol tables of an automaton: `lang.syms` of `lang.att`; `alph4.txt` of
    `04.x.att`, as in MLRegTest.
    """
    stem = Path(re.sub(r"(\.gz|\.bz2|\.xz)$", "", path.name)).stem
    beside = [stem + x + y for x in TABLES for y in ("", *COMPRESSED)]
    if size := re.match(r"0*([1-9][0-9]{0,3})\.", stem):
        beside.append(f"alph{size[1]}.txt")
    return filter(Path.is_file, map(path.with_name, beside))


def _read_table(path: Path) -> dict[str, int]:
    """The number of each symbol in an OpenFst table; that of ε is 0."""
    numbers: dict[str, int] = {}
    for place, line in numbered_lines(path):
        if not line.strip():
            continue
        found = _SYMBOL.fullmatch(line)
        if found is None or found[1] in numbers or int(found[2]) in numbers.values():
            raise DatasetError(
                f"table {path.name!r:.60}, {place}: {line.strip()!r:.60}, expected a symbol "
                "and its number, each of which is not yet in it"
            )
        numbers[found[1]] = int(found[2])
    return numbers


# The output of `seqcls model automaton`, and drawings.


class _Learned(BaseModel):
    model_config = ConfigDict(strict=True)

    alphabet: list[str]
    start: int
    accepting: list[int]
    transitions: list[dict[str, int]]


def _read_json(path: Path) -> Arcs:
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
    named = [(str(source), token, str(target)) for source, token, target in arcs]
    return Arcs(str(learned.start), [*map(str, learned.accepting)], named, alphabet)


def _read_dot(path: Path) -> Arcs:
    return drawn_arcs("".join(lines_of(path)))
