"""Automaton files: how each format is read, and which files are refused."""

import json
import random
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.errors import ConfigError, DatasetError, SpecError
from seqcls.interpretability.automaton import dot, record
from seqcls.problem import Problem, configuration, resolve
from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import remember, unpack
from seqcls.tasks.automaton import minimize
from seqcls.tasks.files import FromAutomaton
from seqcls.tasks.regular import Regular
from sweeps.api import theory
from sweeps.datasets import read_content, read_dataset
from sweeps.datasets.summary import summary
from sweeps.grid.spec import parse_spec
from tests.commands.files import written
from tests.tasks import every_string, strings_of

AB = "0\t1\ta\ta\n1\t0\tb\tb\n0\n"
"""(ab)*, as OpenFst prints it."""

WRITTEN = {
    "AT&T": ("lang.att", AB),
    "an acceptor": ("lang.att", "0 1 a\n1 0 b\n0\n"),
    "weights of zero": ("lang.att", "0 1 a a 0\n1 0 b b 0.0\n0 0\n"),
    "other numbers": ("lang.att", "7 30 a a\n30 007 b b\n7\n"),
    "line ends of Windows": ("lang.att", AB.replace("\n", "\r\n")),
    "an empty line at the end": ("lang.att", AB + "\n \n"),
    "a BOM": ("lang.att", "\ufeff" + AB),
    "lines twice": ("lang.att", AB + AB),
    "a final state without a way to it": ("lang.att", AB + "99\n"),
    "a state that accepts nothing": ("lang.att", AB + "0 5 b b\n5 5 a a\n"),
    "epsilon": ("lang.att", "0 2 <eps> <eps>\n2 1 a a\n1 0 b b\n0\n"),
    "a cycle of epsilon": ("lang.att", "0 2 ε ε\n2 0 ε ε\n2 1 a a\n1 0 b b\n2\n"),
    "two ways": ("lang.att", "0 1 a a\n0 2 a a\n1 0 b b\n2 0 b b\n0\n"),
    "JSON": ("lang.json", json.dumps(record(Regular("ab", "(ab)*").automaton, "ab"), indent=1)),
    "DOT": ("lang.dot", dot(Regular("ab", "(ab)*").automaton, "ab", "white")),
}


def automaton_of(path: Path) -> StoredAutomaton:
    """The automaton read from a file."""
    content = read_content(path)
    assert isinstance(content.dataset, StoredAutomaton), content.problems
    return content.dataset


def task_of(path: Path, alphabet: str = "") -> FromAutomaton:
    """The task of a file."""
    return FromAutomaton(remember(automaton_of(path)), alphabet)


def problem_of(path: Path, **fields: Any) -> Problem:
    """The problem of a file."""
    digest = remember(automaton_of(path))
    return resolve(configuration({"task": "automaton", "dataset": digest, **fields}))


def test_automaton_has_one_digest_in_every_format(tmp_path: Path) -> None:
    plain = automaton_of(written(tmp_path, "plain.att", AB))
    for way, (name, content) in WRITTEN.items():
        path = written(tmp_path, name, content)
        read, task = automaton_of(path), task_of(path)
        assert (read.digest, read.alphabet, read.name) == (plain.digest, "ab", path.name), way
        again = unpack(read.packed, "again")
        assert (again.digest, again.name, len(again)) == (read.digest, "again", 3), way
        rows = every_string(task, *range(6))
        expected = [re.fullmatch("(ab)*", text) is not None for text in rows]
        assert task.labels(strings_of(task, rows)).tolist() == expected, way


@pytest.mark.parametrize("seed", range(8))
def test_nondeterministic_automaton_accepts_by_any_path(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    states = rng.randint(1, 7)
    arcs = [
        (rng.randrange(states), rng.randrange(states), rng.choice(["a", "b", "c", "<eps>"]))
        for _ in range(rng.randint(1, 14))
    ]
    arcs += [(0, 0, "a")]
    final = {rng.randrange(states), arcs[0][0]}

    def closed(reached: set[int]) -> set[int]:
        more = reached | {y for x, y, symbol in arcs if x in reached and symbol == "<eps>"}
        return reached if more == reached else closed(more)

    def accepts(text: str, start: int) -> bool:
        reached = closed({start})
        for letter in text:
            reached = closed({y for x, y, symbol in arcs if x in reached and symbol == letter})
        return bool(reached & final)

    lines = [f"{x}\t{y}\t{symbol}\t{symbol}" for x, y, symbol in arcs] + [str(x) for x in final]
    task = task_of(written(tmp_path, "lang.att", "\n".join(lines)))
    rows = every_string(task, *range(5))
    expected = [accepts(text, arcs[0][0]) for text in rows]
    assert task.labels(strings_of(task, rows)).tolist() == expected, lines


def test_summary_reports_determinization_and_the_assumed_start(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", "0 1 a a\n0 0 a a\n0 0 b b\n1 2 <eps> <eps>\n2\n")
    read = summary(path)
    assert read.states == 2
    assert read.rows == 0
    because = "nondeterministic (ε and several transitions for one symbol)"
    sizes = "determinized from 3 states to 2"
    assert any(because in sentence and sizes in sentence for sentence in read.sentences)
    assert any(sentence.startswith("regular, star-free") for sentence in read.sentences)
    made = automaton_of(path)
    stored = unpack(made.packed, made.name)
    assert stored.digest == made.digest
    # An automaton read from a database reports it, too.
    for content in (made, stored):
        words = FromAutomaton(remember(content), "").describe()
        assert because in words
        assert sizes in words
    plain = " ".join(summary(written(tmp_path, "b.att", AB)).read_as)
    assert "missing transitions reject" in plain
    assert "start" not in plain
    # The start of AT&T, where it is assumed, and what numbers of symbols mean.
    start = "the start is state 1, which the first line names"
    made = automaton_of(written(tmp_path, "b.att", "1 1 b b\n0 1 a a\n1\n"))
    assert start in summary(tmp_path / "b.att").sentences
    assert start in FromAutomaton(remember(unpack(made.packed, "again")), "").describe()
    path = written(tmp_path, "lang.att", "0 1 0 0\n1 1 1 1\n1\n")
    assert "'0' is a symbol, and not ε" in summary(path).read_as[0]
    written(tmp_path, "lang.syms", "<eps> 0\na 1\n")
    assert summary(path).tokens == ["a"]


def test_symbols_may_be_words_or_composed_letters(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", "0\t1\tpush\tpush\n1\t0\tpop\tpop\n0\n")
    assert list(task_of(path).alphabet) == ["pop", "push"]
    assert problem_of(path).tokenizer.encode("push pop") == [0, 3, 2]
    assert "3 states over 2 tokens" in task_of(path).describe()
    path = written(tmp_path, "lang.att", "0 1 e\u0301 \u00e9\n0 0 <eps> @0@\n1\n")
    assert summary(path).tokens == ["\u00e9"]


def test_symbol_table_names_symbols(tmp_path: Path) -> None:
    for name, language in (("lang.syms", "lang.att"), ("alph3.txt", "03.lang.att")):
        written(tmp_path, name, "<none>\t0\na\t7\nb\t8\nc\t9\n")
        for lines in (
            "0 1 7 7\n1 0 8 8\n1 1 0 0\n0\n",
            "0 1 a a\n1 0 b b\n1 1 <none> <none>\n0\n",
            "0 1 a a\n1 0 b b\n1 1 <eps> <eps>\n0\n",
        ):
            path = written(tmp_path, language, lines)
            task = task_of(path)
            # c is a token, though no line has it.
            assert task.alphabet == "abc"
            found = task.labels(strings_of(task, ["abab", "abc", ""])).tolist()
            assert found == [True, False, True], lines
            assert any(f"table {name}" in sentence for sentence in summary(path).sentences)


def test_faulty_symbol_table_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", AB)
    for table, words in (
        ("<eps> 0\na 1\n", "symbol 'b' is neither a name nor a number of the table 'lang.syms'"),
        ("a\n", "table 'lang.syms', line 1: 'a', expected a symbol"),
        ("<eps> 0\na 1\nb 1\nc 2\n", "line 3: 'b 1', expected a symbol and its number"),
    ):
        written(tmp_path, "lang.syms", table)
        assert_refused(path, words)


def test_alphabet_field_adds_tokens(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", "0 0 b b\n0\n")
    with pytest.raises(ConfigError, match="no string of 0 to 10 tokens is negative"):
        problem_of(path)
    task = problem_of(path, alphabet="ab").language
    assert task.alphabet == "ab"
    assert task.labels(strings_of(task, ["bb", "ba", ""])).tolist() == [True, False, True]
    assert problem_of(path, alphabet="a push").language.alphabet == ("a", "b", "push")


def test_automaton_file_equals_the_same_regular_expression(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", AB)
    regular = {"alphabet": "ab", "pattern": "(ab)*"}
    ours = problem_of(path, negatives="near")
    theirs = resolve(configuration({"task": "regular", **regular, "negatives": "near"}))
    drawn, same = next(ours.train.epochs()), next(theirs.train.epochs())
    assert (drawn.strings.letters == same.strings.letters).all()
    assert (drawn.targets == same.targets).all()
    for name, values in theirs.language.features(drawn.strings).items():
        assert (ours.language.features(drawn.strings)[name] == values).all()
    theory_of_file = theory("automaton", path=str(path))
    assert theory_of_file.language == theory("regular", **regular).language
    assert "'lang.att'" in theory_of_file.task


def test_rows_and_automata_are_distinguished(tmp_path: Path) -> None:
    path = written(tmp_path, "lang.att", AB)
    with pytest.raises(DatasetError, match=r"lang\.att': it is an automaton, expected rows"):
        read_dataset(path)
    with pytest.raises(ConfigError, match=r"'lang\.att': it is an automaton; use task='auto"):
        configuration({"task": "file", "dataset": remember(automaton_of(path))})
    rows = read_dataset(written(tmp_path, "rows.csv", "tokens,label\nab,1\nba,0\n"))
    with pytest.raises(ConfigError, match=r"'rows\.csv': its rows have labels; use task='file'"):
        configuration({"task": "automaton", "dataset": remember(rows)})


def test_path_axis_expands_to_matching_files(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, f"{number}.att", AB + "0 0 c c\n" * (number > 0) + f"{number % 2}\n")
    spec = {"name": "all", "fixed": {"task": "automaton"}, "model_seeds": [0]}
    plan = parse_spec({**spec, "axes": {"path": str(tmp_path / "[01].att")}})
    names = [resolve(config).task.describe().split("'")[1] for config in plan.configs()]
    assert names == ["0.att", "1.att"]
    with pytest.raises(SpecError, match="no file matches it"):
        parse_spec({**spec, "axes": {"path": str(tmp_path / "*.dot")}})
    written(tmp_path, "copy.att", AB)
    with pytest.raises(SpecError, match=r"copy.att': has the content of .*0.att'; keep one"):
        parse_spec({**spec, "axes": {"path": [str(tmp_path / "*.att")]}})


REFUSED: list[tuple[str | bytes, str]] = [
    ("", "no lines"),
    ("0\n", "no line has a symbol"),
    ("0 1 a a\n", "it accepts no string"),
    ("0 1 a a 0.5\n1\n", "line 1: '0 1 a a 0.5', expected a transition"),
    ("0 1 a a\n1 NaN\n", "line 2: '1 NaN', expected"),
    ("0 1 a b\n1\n", "line 1: symbol 'a' has the output 'b'"),
    ("0 q a a\n", "line 1: '0 q a a', expected"),
    ("0 " + "9" * 5000 + " a a\n", "line 1: '0 99999"),
    ("0 1 a a 0 0\n", "line 1: '0 1 a a 0 0', expected"),
    ("0\t0\t\t\n", "no line has a symbol"),
    ("0 0 \x07 \x07\n0\n", r"symbol '\x07'"),
    ("0 0 CLS CLS\n0\n", "symbol 'CLS'"),
    ("0 0 e\n0 1 \u0301\n1\n", "U+0065 and U+0301: side by side they are U+00E9"),
    ("0 0 " + "x" * 41 + " " + "x" * 41 + "\n0\n", "symbol 'xxx"),
    # Symbols with a meaning of their own: any symbol, flags of HFST, names of the empty string.
    *(
        (f"0 1 a a\n1 0 {x} {x}\n0\n", f"symbol '{x}' may stand for")
        for x in ("@_IDENTITY_SYMBOL_@", "@P.X.Y@", "eps", "Epsilon", "\u03bb", "<sigma>")
    ),
    ("0 1 a a\n\0\n", "line 2 is not UTF-8 text"),
    ("0 0 ä ä\n0\n".encode("latin-1"), "line 1 is not UTF-8 text"),
    (b"\x1f\x8b\x08\0", "unpack what is packed"),
    ("".join(f"0 0 s{x} s{x}\n" for x in range(256)) + "0\n", "256 symbols"),
    ("".join(f"{x} {x + 1} a a\n" for x in range(10_001)), "more than 10,000 states"),
    (
        "".join(f"{x} {x + 1} a\n" for x in range(9_999)) + "9999\n",
        "and complete, its automaton has",
    ),
    (
        "0 0 a\n0 0 b\n0 1 a\n"
        + "".join(f"{x} {x + 1} {y}\n" for x in range(1, 15) for y in "ab")
        + "15\n",
        "made deterministic and complete, its automaton has more than 10,000 states",
    ),
]
"""The content of a file, and the words that its refusal must have."""


def assert_refused(path: Path, word: str) -> None:
    """Asserts that a file is refused in one line that has a word."""
    (problem,) = read_content(path).problems
    assert word in problem
    assert "\n" not in problem
    assert len(problem) < 300


AS_JSON = record(Regular("ab", "(ab)*").automaton, "ab")
AS_DOT = dot(Regular("ab", "(ab)*").automaton, "ab")


CHANGED: list[tuple[str, str, str]] = [
    ("a.json", json.dumps({**AS_JSON, "start": 3}), "state 3 is not one of the"),
    ("a.json", json.dumps({**AS_JSON, "accepting": [7]}), "state 7 is not one of the"),
    ("a.json", json.dumps({**AS_JSON, "transitions": [{"c": 0}]}), "token 'c' is not in"),
    ("a.json", json.dumps({**AS_JSON, "transitions": [{"a": 1}]}), "state 1 is not one of the 1"),
    ("a.json", json.dumps({**AS_JSON, "alphabet": ["a", "a"]}), "alphabet is ['a', 'a']"),
    ("a.json", json.dumps(AS_JSON)[:-3], "is not JSON"),
    ("a.dot", AS_DOT.replace("start -> 0", "start -> 9"), "state '9'"),
    ("a.dot", AS_DOT.replace("  start -> 0;\n", ""), "0 arrows from start"),
    (
        "a.dot",
        AS_DOT.replace('1 [label="a"]', "1"),
        "line 6: the edge from '0' to '1' is not labeled",
    ),
    ("a.dot", AS_DOT[:-1], "line 11: 'the end of the file'"),
    ("a.dot", "graph { 0 -- 1 }", "line 1: 'graph'"),
]


DRAWN = """digraph {
  start [shape=point];
  start -> 0;
  1 [shape=doublecircle];
  0 -> 1 [label="a"];
  0 -> 0 [label="b"];
  1 -> 1 [label="a, b"];
}
"""
"""b*a(a|b)*."""

MEANING_THE_SAME = {
    "letters without a space": DRAWN.replace("a, b", "a,b"),
    "several lines": DRAWN.replace("a, b", r"a\nb"),
    "texts in parts": DRAWN.replace('"a, b"', '"a" + ", b"'),
    "parallel edges": DRAWN.replace('1 -> 1 [label="a, b"]', "1 -> 1 [label=a] 1 -> 1 [label=b]"),
    "peripheries": DRAWN.replace("shape=doublecircle", "shape=circle; peripheries=2"),
    "a default of nodes": DRAWN.replace(
        "  1 [shape=doublecircle];", "node [shape=doublecircle] 1 node [shape=circle];"
    ),
    "a cluster": DRAWN.replace(
        "  1 [shape", "  subgraph cluster_a { node [peripheries=2]; 1 }\n  1 [shape"
    ),
    "chains and blocks": DRAWN.replace('0 -> 1 [label="a"]', 'edge [label="a"]; 0 -> {1}'),
    "a block that goes on": DRAWN.replace(
        "  1 [shape=doublecircle];",
        "subgraph s { node [shape=doublecircle] } subgraph s { subgraph s { 1 } }",
    ),
    "a comment behind an edge": DRAWN.replace("start -> 0;", "start -> 0 # -> 1"),
    "comments": "// a -> b\n# c -> d\n" + DRAWN.replace("start -> 0", "start -> /* 9 */ 0"),
    "ports": DRAWN.replace("0 -> 1 ", '"0":ne -> 1:w:c '),
    "a start that is invisible": DRAWN.replace("[shape=point]", '[style="filled,invis"]'),
    "states with names": DRAWN.replace("0", "q0").replace("1", '"q 1"'),
}


def test_dot_file_means_what_graphviz_draws(tmp_path: Path) -> None:
    for way, drawn in MEANING_THE_SAME.items():
        task = task_of(written(tmp_path, "lang.dot", drawn))
        assert task.alphabet == "ab", way
        rows = every_string(task, *range(5))
        assert task.labels(strings_of(task, rows)).tolist() == ["a" in x for x in rows], way


EDGE = "line 5: the edge from '0' to '1'"
MEANING_ANYTHING: list[tuple[str, str, str]] = [
    ('"a"', "<a<br/>b>", "line 5: '<a<br/>b>];'"),
    ('"a"', '"a-c"', f"{EDGE}: label 'a-c'"),
    ('"a"', "\"'a'\"", f"{EDGE}: label \"'a'\""),
    ('"a"', '"a,,c"', f"{EDGE}: label 'a,,c' has nothing between"),
    ('"a"', '"a", taillabel=c', f"{EDGE} has taillabel='c'"),
    ('"a"', '"a", dir=back', f"{EDGE} has dir='back'"),
    ("=doublecircle", "=doubleoctagon", "state '1' has shape='doubleoctagon'"),
    ("=doublecircle", "=circle peripheries=3", "state '1' has shape='circle' and peripheries='3'"),
    ("  1 ->", "  s [shape=none] s -> 1 1 ->", "2 arrows from start"),
    ("0 -> 1", "0 -- 1", "line 5: '--'"),
    ("digraph", "strict digraph", "line 7: a second edge from '0' to '0'"),
]


def test_faulty_or_ambiguous_automaton_is_refused_in_one_line(tmp_path: Path) -> None:
    for content, word in REFUSED:
        assert_refused(written(tmp_path, "lang.att", content), word)
    for name, text, word in CHANGED:
        assert_refused(written(tmp_path, name, text), word)
    drawn = DRAWN.replace('  0 -> 0 [label="b"];', '  0 -> 0 [label="b"];\n  0 -> 0 [label="c"];')
    for old, new, word in MEANING_ANYTHING:
        assert_refused(written(tmp_path, "lang.dot", drawn.replace(old, new)), word)


def test_dot_file_round_trips_odd_tokens(tmp_path: Path) -> None:
    table = np.array([[1, 0, 2], [1, 2, 0], [2, 2, 2]])
    made = minimize(table, np.array([False, True, False]))
    for tokens in (("a,b", "[x]", "a-c"), ("'n'", "&lt;", "\\n"), ("{", "}", ","), (",", '"', "a")):
        path = written(tmp_path, "lang.dot", dot(made, tokens))
        assert sorted(task_of(path).alphabet) == sorted(tokens)
        found = task_of(path).automaton
        assert (len(found.table), found.accepting.sum()) == (3, 1)


PAIR = [{"a": 1, "%s": 1}, {"a": 1, "b": 1}]
EMPTY = {
    "lang.dot": DRAWN.replace('0 [label="b"]', '1 [label="%s"]'),
    "lang.att": "0 1 a\n0 1 %s\n1 1 a\n1 1 b\n1\n",
    "lang.json": json.dumps(
        {"alphabet": ["a", "b", "%s"], "start": 0, "accepting": [1], "transitions": PAIR}
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_epsilon_is_not_a_letter(name: str, tmp_path: Path) -> None:
    for symbol in ("ε", "<eps>", "<epsilon>", "@0@"):
        path = written(tmp_path, name, EMPTY[name].replace("%s", symbol))
        task = task_of(path)
        assert task.alphabet == "ab"
        assert task.labels(strings_of(task, ["", "ba"])).tolist() == [True, True]
        assert any("nondeterministic (ε" in sentence for sentence in summary(path).sentences)
    # A letter is one in whatever form it is written, in a table of symbols, too.
    path = written(tmp_path, name, EMPTY[name].replace("%s", "e\u0301"))
    assert task_of(path).alphabet == "ab\u00e9"
    if name == "lang.att":
        written(tmp_path, "lang.syms", "<eps> 0\na 1\nb 2\ne\u0301 3\n")
        assert task_of(path).alphabet == "ab\u00e9"


def test_damaged_automaton_is_not_unpacked(tmp_path: Path) -> None:
    line, _, cells = automaton_of(written(tmp_path, "lang.att", AB)).content.partition(b"\n")
    cases: list[dict[str, Any]] = [
        {"states": 99}, {"states": "3"}, {"alphabet": []}, {"alphabet": ["a", "a"]},
        {"version": 2}, {"read_as": ["one\ntwo"]},
    ]  # fmt: skip
    for damage in cases:
        head = json.dumps({**json.loads(line), **damage}).encode()
        with pytest.raises(DatasetError, match="cannot be unpacked"):
            unpack(zlib.compress(head + b"\n" + cells))
