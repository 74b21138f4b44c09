"""Random languages of subregular classes: their class, description and pinned digests."""

import hashlib
import itertools
import re
from typing import Any, get_args

import numpy as np
import pytest

from seqcls.config import LanguageClass, RunConfig
from seqcls.problem import resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.subregular import NOT_MEASURED, RandomSubregular
from tests.science.test_subregular import smallest_of

NAMES = get_args(LanguageClass)
WIDTHS = {"Zp": (2, 3)}


def language(name: str = "SL", **fields: Any) -> RandomSubregular:
    config = RunConfig.from_mapping({"task": "subregular", "language_class": name, **fields})
    task = resolve(config).task
    assert isinstance(task, RandomSubregular)
    return task


def languages(name: str) -> list[RandomSubregular]:
    """Some languages of a class, over three letters and over four."""
    drawn = itertools.product(WIDTHS.get(name, (2, 4)), range(2))
    return [
        language(name, width=x, alphabet_size=3 + seed, language_seed=seed) for x, seed in drawn
    ]


# Descriptions, parsed by regular expressions.

PATTERN = re.compile(
    r"(?P<text>\S+?)(?P<start> at the start)?(?P<end> at the end)?( at least (?P<times>\d+) times)?"
    r"( after the last (?P<after>\S+))?( on the tier {(?P<tier>[^}]*)})?"
)
SUM = re.compile(r"(?P<terms>.+) equal to (?P<remainders>.+) modulo (?P<modulus>\d+)")
QUANTITY = re.compile(r"(none|all|(at least|at most|exactly) ([\d or]+)) of \((.*)\)")


def parts_of(text: str) -> list[str]:
    """The parts between semicolons outside parentheses, without their own parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        parts[-1] += character
        if character == ";" and not depth:
            parts[-1:] = [parts[-1][:-1], ""]
    stripped = [part.strip() for part in parts]
    return [part[1:-1] if part.startswith("(") else part for part in stripped]


def holds(condition: str, string: str) -> bool:
    if found := QUANTITY.fullmatch(condition):
        parts = parts_of(found[4])
        held = sum(holds(part, string) for part in parts)
        numbers = [int(x) for x in re.findall(r"\d+", found[3] or "")]
        return {
            "none": held == 0,
            "all": held == len(parts),
            "at least": held >= max(numbers, default=0),
            "at most": held <= max(numbers, default=0),
            "exactly": held in numbers,
        }[found[2] or found[1]]
    if condition.startswith("without "):
        return not holds(condition.removeprefix("without "), string)
    if found := SUM.fullmatch(condition):
        terms = re.findall(r"(\d*)(\w)", found["terms"])
        total = sum(int(weight or 1) * string.count(letter) for weight, letter in terms)
        remainders = re.findall(r"\d+", found["remainders"])
        return total % int(found["modulus"]) in map(int, remainders)
    found = PATTERN.fullmatch(condition)
    assert found is not None, condition
    if found["tier"]:
        string = "".join(x for x in string if x in found["tier"])
    if found["after"]:
        string = string.rpartition(found["after"])[2]
    text = found["text"].replace("…", ".*")
    text = ("^" if found["start"] else "") + text + ("$" if found["end"] else "")
    return len(re.findall(f"(?={text})", string)) >= int(found["times"] or 1)


def is_positive(description: str, string: str) -> bool:
    """True if a string is positive by the description alone."""
    found = re.fullmatch(
        r"Strings of \S+ (?:with )?(.*?)(?: on the tier {(.*?)})? are positive"
        r"(?:, where a letter stands for how often it occurs)?\.",
        description,
    )
    assert found is not None, description
    return holds(found[1], "".join(x for x in string if not found[2] or x in found[2]))


@pytest.mark.parametrize("name", NAMES)
def test_random_language_is_as_described_and_in_no_smaller_class(name: str) -> None:
    for task in languages(name):
        assert_as_described(task)
        found = {membership.name: membership for membership in smallest_of(task.automaton)}
        if name == "Reg":
            # To MLRegTest all that is neither star-free nor counts modulo a prime.
            assert set(found) <= {"quasi-aperiodic", "solvable", "Reg"}
            continue
        own = found[name]
        if name in ("PLT", "TPLT"):
            # It is drawn by blocks of the width: fewer letters may suffice, or none be found.
            assert own.k is None or own.k <= task.width
        else:
            assert own.k == (None if name in NOT_MEASURED else task.width)
        assert own.t in (2, None)
        assert own.tier is None or len(own.tier) == 2


def assert_as_described(task: RandomSubregular) -> None:
    """Asserts that the description gives the label of every string, short and long."""
    letters = task.alphabet
    longest = {3: 6, 4: 5}[len(letters)]
    rng = np.random.default_rng(0)
    rows = [x for n in range(longest) for x in itertools.product(range(len(letters)), repeat=n)]
    rows += [tuple(rng.integers(len(letters), size=n).tolist()) for n in range(7, 40)]
    for label in (True, False):
        rows += [tuple(task.draw(rng, n, label).tolist()) for n in range(20, 30)]
    labels = task.labels(TokenStrings.of_lists(len(letters), rows)).tolist()
    described = [is_positive(task.describe(), "".join(letters[x] for x in row)) for row in rows]
    assert described == labels, task.describe()


@pytest.mark.parametrize(("name", "least"), [("LT", 24), ("SP", 8)])
def test_seeds_give_different_languages(name: str, least: int) -> None:
    made = [language(name, language_seed=seed).automaton for seed in range(25)]
    assert len({(x.table.tobytes(), x.accepting.tobytes()) for x in made}) >= least


# No change of what is drawn, of what is decided, or of where deciding ends may change these.


PINNED = {
    "SL": "b6ef18ac6c9b", "coSL": "78abffa35836", "SP": "403e93572474", "coSP": "785e82fb189e",
    "LT": "cc169fedf4f3", "LTT": "18b8c1eebc4e", "PT": "6562613e8e57", "PLT": "2120eb34b41b",
    "TSL": "af2324ca9eaa", "TcoSL": "7001ebaa360e", "TLT": "f149d8934724", "TLTT": "a48d54b0db52",
    "TPLT": "7393ffc7e2ec", "SF": "a714b5bee244", "Zp": "cbea8128e418", "Reg": "0d6144ab53bb",
}  # fmt: skip


def test_random_languages_have_pinned_digests() -> None:
    def digest(name: str) -> str:
        found = language(name, language_seed=7).automaton
        content = np.column_stack([found.table, found.accepting]).astype("<i8").tobytes()
        return hashlib.sha256(content).hexdigest()[:12]

    assert {name: digest(name) for name in NAMES} == PINNED


def test_random_language_has_both_labels_at_every_length() -> None:
    for name in NAMES:
        task = language(name, language_seed=1)
        assert all(task.has(n, label) for n in range(20, 61) for label in (True, False))
        rng = np.random.default_rng(0)
        letters = rng.integers(4, size=(20_000, 20), dtype=np.uint8)
        positive = task.labels(TokenStrings.of_letters(4, letters)).sum()
        # A label with 20 expected in 20,000 is missing with a probability of 2e-9.
        assert 0 < positive < 20_000, name


def test_64_letters_have_one_character_each() -> None:
    task = language("TSL", alphabet_size=64, tier_size=7)
    assert len(set(task.alphabet)) == 64
    assert task.alphabet.startswith("abc")
