"""Strings as text, as ids and as counts."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import InvalidStringError
from seqcls.strings.alphabets import alphabet_obstacle
from seqcls.strings.notation import MAX_COUNT, MAX_SPELLED_LENGTH
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import (
    CLS,
    LETTERS,
    PAD,
    Tokenizer,
)

THREE = Tokenizer(LETTERS[:3])
NAMED = Tokenizer(("push", "pop", "a"))
BRACKETS = Tokenizer("()<>[]{}")


def test_tokenizer_encodes_decodes_and_counts() -> None:
    assert THREE.encode("baac") == THREE.encode("ba{2}c") == [CLS, 3, 2, 2, 4]
    assert THREE.decode([CLS, 3, 2, 2, 4, PAD, PAD]) == "ba{2}c"
    assert THREE.counts("ab{100}c{55}") == (1, 100, 55)
    assert THREE.counts("a{1}ba{2}") == (3, 1, 0)
    assert THREE.text_of_counts((1, 100, 55)) == "ab{100}c{55}"
    for tokenizer in (THREE, NAMED):
        assert tokenizer.encode("") == [CLS]
        assert tokenizer.counts("") == (0, 0, 0)
        assert tokenizer.decode([CLS, PAD]) == tokenizer.text_of_counts((0, 0, 0)) == ""
    assert Tokenizer("ab") == Tokenizer(("a", "b"))
    assert Tokenizer(("a", "b")).decode([2, 3]) == "ab"
    assert Tokenizer(("a", "bc")).decode([2, 3]) == "a bc"


REFUSED: list[tuple[Tokenizer, str, str]] = [
    (THREE, "abd", "unknown letter 'd' in 'abd': the alphabet is 'abc'"),
    (THREE, "a b", "unknown letter ' '"),
    (THREE, "A", "unknown letter 'A'"),
    *((THREE, f"a{{{x}}}", f"the count '{x}'") for x in ("0", "", "-1", "+1", " 1", "1.5", "03")),
    (THREE, "a{٣}", "cannot read the count '٣'"),
    (THREE, "{3}a", "at character 1: a count must follow a letter"),
    (THREE, "a{2}{3}", "at character 5: a count must follow a letter"),
    (THREE, "a{", "at character 2: '{' is not closed"),
    (THREE, "ab{3", "at character 3: '{' is not closed"),
    (THREE, "a}", "at character 2"),
    (THREE, "a{" + "9" * 5000 + "}", "is larger than"),
    (THREE, f"a{{{MAX_COUNT + 1}}}", "is larger than"),
    (THREE, f"a{{{MAX_COUNT}}}ba", "repeats a letter more than"),
    (THREE, "<ab", "at character 1: a group has"),
    (THREE, "ab>", "at character 3: a group has"),
    (THREE, "<>{3}", "a group has"),
    (THREE, "<ab>{0}", "cannot read the count '0'"),
    (THREE, "<" * 9 + "a" + ">" * 9, "more than 8 deep"),
    (NAMED, "pusk pop", "'pusk' in 'pusk pop': the tokens are push, pop, a; did you mean 'push'"),
    (NAMED, "pushpop", "unknown token 'pushpop'"),
    (NAMED, "push {3}", "at character 6: a count must follow"),
    (NAMED, "<push pop", "at character 1: a group has"),
    (NAMED, "push{0}", "cannot read the count '0'"),
    # Tokens that are notation are not read as they are.
    *((BRACKETS, x, "{<}, {>}, {{} and {}}") for x in ("([{<>}])", "(<()>)", "<", "{", "(}")),
    (Tokenizer([f"token{x}" for x in range(254)]), "tokn2" + " token1" * 5000, "246 more; did you"),
]


def test_malformed_string_is_refused_with_the_reason() -> None:
    for tokenizer, text, word in REFUSED:
        for read in (tokenizer.counts, tokenizer.encode):
            with pytest.raises(InvalidStringError) as refused:
                read(text)
            message = str(refused.value)
            assert word in message or (read == tokenizer.encode and "spelled out" in message), text
            assert "\n" not in message
            assert len(message) < 300


def test_a_string_too_long_to_spell_out_still_has_counts() -> None:
    text = f"a{{{MAX_SPELLED_LENGTH}}}b"
    assert THREE.counts(text) == (MAX_SPELLED_LENGTH, 1, 0)
    with pytest.raises(InvalidStringError, match="more than the 1,000,000 that can be spelled out"):
        THREE.encode(text)
    for read in (THREE.encode, THREE.pieces):
        with pytest.raises(InvalidStringError, match="can be spelled out"):
            read("<<<<ab>{99}>{99}>{99}>{99}")
    with pytest.raises(InvalidStringError, match="token id 5 is outside the vocabulary"):
        THREE.decode([CLS, 5])


@given(st.sampled_from([THREE, NAMED]), st.text("push ab<>{}0123456789é", max_size=30))
def test_any_text_is_a_string_or_refused_in_one_line(tokenizer: Tokenizer, text: str) -> None:
    try:
        counts = tokenizer.counts(text)
    except InvalidStringError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert tokenizer.counts(tokenizer.text_of_counts(counts)) == counts
    if sum(counts) < 10_000:
        assert tokenizer.counts(tokenizer.decode(tokenizer.encode(text))) == counts


def test_decoding_many_strings_equals_decoding_each() -> None:
    for alphabet, width in product(["a", "ab", "01wri", "a<{", ("k0", "v0", "x")], [0, 1, 40]):
        tokenizer, rng = Tokenizer(alphabet), np.random.default_rng(width)
        letters = rng.integers(len(alphabet), size=(300, width), dtype=np.uint8)
        for row in letters[100:] if width == 40 else []:
            # Repeated up to a point.
            row[:35] = np.resize(row[: rng.integers(1, 18)], 35)
        lengths = rng.integers(width + 1, size=300)
        strings = TokenStrings.of_letters(len(alphabet), letters, lengths)
        alone = [tokenizer.decode(ids) for ids in strings.ids.tolist()]
        assert tokenizer.decode_all(strings.letters, strings.lengths) == alone
        assert width < 40 or len(alphabet) < 2 or any("<" in text for text in alone)


def test_repetitions_are_read_and_written_as_groups() -> None:
    assert THREE.encode("<a{2}<bc>{2}>{2}") == THREE.encode("aabcbcaabcbc")
    assert THREE.encode("<ab>") == THREE.encode("ab")
    assert THREE.counts("<ab{2}>{1000000000}c") == (10**9, 2 * 10**9, 1)
    assert THREE.counts("<<ab>{9}>{9}") == (81, 81, 0)
    for letters, text in (
        ("ab" * 50, "<ab>{50}"),
        ("ab" * 3, "ababab"),
        ("ab" * 4, "<ab>{4}"),
        ("aab" * 9 + "c", "<a{2}b>{9}c"),
        ("c" + "abc" * 3, "<cab>{3}c"),
        ("aaabbc", "a{3}b{2}c"),
    ):
        assert THREE.decode(THREE.encode(letters)) == text
        assert THREE.encode(text) == THREE.encode(letters)
    assert BRACKETS.decode([2, 6, 8, 4, 5, 9, 7, 3]) == "([{{}{<}{>}{}}])"
    assert BRACKETS.decode([4] * 3 + [5] * 3) == "{<}{3}{>}{3}"
    assert BRACKETS.decode([4, 5] * 9) == "<{<}{>}>{9}"
    assert Tokenizer(("<s>", "a")).decode([2, 3, 3]) == "{<}s{>} a{2}"
    brackets = Tokenizer("()[]")
    assert brackets.decode(brackets.encode("()" * 9 + "[[[")) == "<()>{9}[{3}"


def test_named_tokens_are_separated_by_one_space() -> None:
    assert NAMED.encode("push push pop") == [CLS, 2, 2, 3]
    assert NAMED.decode([CLS, 2, 2, 3, PAD]) == "push{2} pop"
    assert NAMED.decode(NAMED.encode("push pop " * 50 + "a")) == "<push pop>{50} a"
    assert NAMED.decode(NAMED.encode("push pop pop a " * 9)) == "<push pop{2} a>{9}"
    assert NAMED.counts("push{100} pop") == (100, 1, 0)
    assert NAMED.text_of_counts((100, 1, 0)) == "push{100} pop"
    assert NAMED.spell([0, 0, 1]) == "push push pop"
    assert NAMED.pieces("<push a>{2}") == [(0, 1), (2, 1)] * 2
    assert NAMED.spell([]) == ""
    # Any white space between them is read.
    for text in ("push  push\tpop", " push{2}\npop ", "push{2}pop", "<push>{2} <pop >"):
        assert NAMED.encode(text) == NAMED.encode("push push pop")


def test_invalid_token_name_is_refused() -> None:
    for token, word in (
        ("push", "distinct tokens"),
        ("a b", "'a b'"),
        ("a{", "'a{'"),
        ("a\n", "'a\\n'"),
        ("", "1 to 40 characters"),
        ("x" * 41, "1 to 40 characters"),
        ("CLS", "'CLS'"),
    ):
        assert word in str(alphabet_obstacle(("push", token)))


def test_display_writes_short_runs_out() -> None:
    letters, names = Tokenizer("ab01+()"), Tokenizer(("push", "(", "i++"))
    for tokenizer, text, expected in (
        (letters, "({2})({3})){2}", "(()((()))"),
        (letters, "a{2}b", "aab"),
        (letters, "1{2}0{3}", "110{3}"),
        (letters, "<ab{2}>{2}", "<abb>{2}"),
        (letters, "({10})", "(" * 10 + ")"),
        (letters, "({40})", "<(>{40})"),
        (letters, "1{3}+{2}0", "1{3}++0"),
        (letters, "", ""),
        (names, "push{2} ({2}", "push push ( ("),
        (names, "i++{3}", "i++{3}"),
        (names, "<( i++{2}>{9}", "<( i++ i++>{9}"),
    ):
        assert tokenizer.display(text) == expected
        assert tokenizer.encode(expected) == tokenizer.encode(text)


TOKENS = ["a", "é", "7", "(", ")", "[", "{", "}", "<", ">", '"', "'", "+", "-", "\\", "*", "`"]
NAMES = ["i++", "++", '"q"', "a{", "}a", "{2}", "<a>", "10", "q'"]


@st.composite
def written(draw: st.DrawFn) -> tuple[Tokenizer, str]:
    """A tokenizer of any tokens, and a text that someone could type for it."""
    known = draw(st.sampled_from([TOKENS, [*TOKENS, *NAMES]]))
    chosen = draw(st.lists(st.sampled_from(known), min_size=1, max_size=5, unique=True))
    tokenizer = Tokenizer(chosen)
    counts = st.sampled_from(["", "{1}", "{2}", "{7}", "{40}"])
    pieces = st.builds(str.__add__, st.sampled_from(chosen).map(spelled_by(tokenizer)), counts)
    join = tokenizer.separator.join
    groups = st.builds(
        lambda inner, count: f"<{join(inner)}>{{{count}}}",
        st.lists(pieces, min_size=1, max_size=3),
        st.integers(1, 12),
    )
    return tokenizer, join(draw(st.lists(pieces | groups, max_size=5)))


def spelled_by(tokenizer: Tokenizer) -> Callable[[str], str]:
    numbers = {token: number for number, token in enumerate(tokenizer.alphabet)}
    return lambda token: tokenizer.spell([numbers[token]])


def test_letters_are_normalized_and_stripped() -> None:
    tokenizer = Tokenizer("e\u00e9")
    for text in ("\u00e9{3}e", " e\u0301{3}e\n"):
        assert tokenizer.encode(tokenizer.notation(text)) == [0, 3, 3, 3, 2]
    assert tokenizer.notation(["e\u0301", "e"]) == "\u00e9e"
    # Of rows that were stored before letters were in one form.
    assert Tokenizer("e\u0301").encode("\u00e9") == [0, 2, 3]
    # Marks that no letter is composed with are letters of their own.
    assert Tokenizer("\u025b\u0303").encode("\u025b\u0303{2}") == [0, 2, 3, 3]


@given(written())
def test_displayed_string_is_read_back(case: tuple[Tokenizer, str]) -> None:
    tokenizer, text = case
    ids = tokenizer.encode(text)
    shown = tokenizer.display(text)
    assert tokenizer.encode(shown) == ids
    assert tokenizer.display(shown) == shown
    # A text box has several of them in one line.
    several = [
        string for string in (shown, text, tokenizer.display(tokenizer.decode(ids))) if string
    ]
    assert tokenizer.strings_of(tokenizer.line_of(several)) == several
