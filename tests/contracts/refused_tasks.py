"""Refused settings of tasks and samplers, and words of the refusal."""

from typing import Any

Row = tuple[str, dict[str, Any], str]
"""A name of the fault, the fields, and words of the refusal."""

COUNTED = {
    "nothing": ("", "expects a condition"),
    "half of a comparison": ("a >", "cannot be read"),
    "an assignment": ("a % 2 = 0", "=="),
    "no comparison": ("a", "'a' is not a comparison"),
    "signs of other languages": ("a =< b", "write <= or >="),
    "and in C": ("a > b && b > c", "'and' or 'or'"),
    "not in C": ("!(a > b)", "write 'not'"),
    "a product without a sign": ("2 a > b", "for a product write"),
    "a power": ("a^2 > b", "not a whole number"),
    "a letter that is not there": ("a > d", "'d' is outside the alphabet 'abc'"),
    "a fraction": ("a > 1.5", "not a whole number"),
    "a remainder by a letter": ("a % b == 0", "at least 1"),
    "a remainder by zero": ("a % 0 == 0", "at least 1"),
    "identity": ("a is b", "compared by"),
    "too large a number": ("a > 10000000000", "1,000,000,000"),
    "an import": ("__import__('os') > 1", "a text"),
    "an attribute": ("a.b > 1", "not a whole number"),
    "too deep": ("a" + " + a" * 200 + " > 1", "nested more than"),
    "the program's own name of a token": ("_token_97 > 1", "'_token_97' is outside"),
    "a letter that Python takes for another": ("ª > 1", "'ª' is outside"),
    "a mark that cannot be seen": ("\ufeffa > 1", "is outside the alphabet"),
    "long chains": ("a" + ".b" * 450, "is not a comparison"),
    "always true": ("a >= 0", "no string of 0 to 10 tokens is negative"),
    "never true": ("a > 10", "no string of 0 to 10 tokens is positive"),
}
PATTERNS = {
    "no pattern": ("", "expects a regular expression"),
    "a letter outside": ("(ac)*", "'c' is outside the alphabet 'ab'"),
    "a range with letters outside": ("[a-z]*", "'c' is outside"),
    "ends of the string": ("^(ab)*$", "leave out $"),
    "an open parenthesis": ("(ab", "a parenthesis is not closed"),
    "nothing to repeat": ("a|+", "nothing stands before"),
    "repeated twice": ("a**", "put parentheses around it"),
    "possessive": ("a*+a", "leave out the + behind a repetition"),
    "atomic": ("(?>a*)a", "write (?:...)"),
    "what a group held": (r"(a)\1", r"leave out \1"),
    "a condition": ("(a)(?(1)b|a)", "what a group held"),
    "looking around": ("(?<!a)b", "nothing may look around"),
    "flags": ("(?i)a", "leave out flags"),
    "a letter with a meaning": (r"\a", "outside the alphabet"),
    "a letter without one": (r"\q", r"\q means nothing"),
    "a backslash": ("a\\", "ends in a backslash"),
    "open bounds": ("a{3", "a { begins bounds"),
    "a blank": ("a b", "' ' is outside the alphabet"),
    "one side of an and": ("(a&)b", "nothing stands on one side of an &"),
    "many times": ("((a{100}){100}){100}", "more than 10,000 states"),
    "a huge number": ("a{" + "9" * 900 + "}", "too large"),
    "deeply nested": ("(" * 499 + "a" + ")" * 499, "nested"),
    "bounds the wrong way": ("a{3,2}", "at least more than at most"),
    "nothing repeated": ("a{0}", "repeats nothing"),
    "many states": ("(a|b)*a(a|b){20}", "more than 10,000 states"),
}
RULES = {
    "no pattern": ("", "", "pattern=''"),
    "what may be empty": ("a*", "", "matches the empty string"),
    "a letter outside": ("[ac]", "", "'c' is outside the alphabet"),
    "what a group held": ("(a)\\1", "", "leave out \\1"),
    "a class of letters": (r"\w", "", "write the tokens themselves"),
    "an empty thing repeated": ("(a*){2}b", "", "repeats what may be empty"),
    "a replacement outside": ("a", "c", "replacement='c'"),
    "no such group": ("(a)", r"\2", "no group 2"),
    "a long replacement": ("a", "babab", "5 tokens of 1"),
}
ALPHABETS = {
    "a blank between letters": ("a b", "no spaces between tokens of one character"),
    "a blank before": (" push pop", "one space between"),
    "a token twice": ("push push", "distinct"),
    "notation in a name": ("push p{", "'p{'"),
    "a name that is not there": ("push poop", "'pop' is outside the alphabet"),
}
REGULAR: dict[str, Any] = {"task": "regular", "alphabet": "ab"}
BORDER: dict[str, Any] = {**REGULAR, "pattern": "(ab|ba)*"}
DYCK_BORDER: dict[str, Any] = {"task": "dyck", "test_strings": "random_and_border"}
LONG_COUNTS: dict[str, Any] = {
    "task": "counting", "alphabet": "abc", "formula": "a*b*c % 7 == 3",
    "test_max_length": 10_000, "train_max_length": 10_000,
}  # fmt: skip
HUGE: dict[str, Any] = {"task": "parity", "max_num_epochs": 100_000, "train_size": 1_000_000}

RANDOM: list[tuple[dict[str, Any], str]] = [
    ({"language_class": "SL", "width": 1}, "'SL' expects 2 or more"),
    ({"language_class": "Zp", "width": 4}, "'Zp' expects a prime"),
    ({"language_class": "LTT", "threshold": 1}, "'LTT' expects 2"),
    ({"language_class": "LT", "threshold": 3}, "'LT' expects none"),
    ({"language_class": "SF", "tier_size": 3}, "'SF' expects none"),
    ({"language_class": "TSL", "tier_size": 4}, "fewer than alphabet_size=4"),
    ({"language_class": "SP", "alphabet_size": 2}, "of 300 languages none"),
]
NINE = {"num_tokens": 9, "answers": "states"}
NEAR = {"test_negatives": "near"}
UNREAD: list[tuple[str, dict[str, Any]]] = [
    ("bracket_types", {"task": "parity", "bracket_types": 2}),
    ("negatives", {"negatives": "edits"}),
    ("negatives", {"task": "copy", "negatives": "near"}),
    ("test_negatives", {"test_negatives": "near"}),
    ("disjoint", {"disjoint": True}),
    ("train_set", {"train_set": "fixed"}),
    ("test_strings", {"test_strings": "random_and_border"}),
    ("test_negatives", {"task": "parity", "test_sampler": "fixed_length", **NEAR}),
    ("test_negatives", {**BORDER, "test_strings": "random_and_border", **NEAR}),
]

COUNTS = {"task": "counting", "alphabet": "abc", "formula": "push > pop"}
REWRITE = {"task": "rewrite", "alphabet": "ab"}

TASKS: list[Row] = [
    *((f"a formula: {x}", {**COUNTS, "formula": y}, z) for x, (y, z) in COUNTED.items()),
    *((f"a pattern: {x}", {**REGULAR, "pattern": y}, z) for x, (y, z) in PATTERNS.items()),
    *((f"tokens: {x}", {**COUNTS, "alphabet": y}, z) for x, (y, z) in ALPHABETS.items()),
    *(
        (f"a rule: {x}", {**REWRITE, "pattern": own, "replacement": by}, word)
        for x, (own, by, word) in RULES.items()
    ),
    ("no alphabet", {"task": "regular", "pattern": "a"}, "alphabet=''"),
    ("a letter twice", {"task": "regular", "alphabet": "aa", "pattern": "a"}, "distinct"),
    ("names and a pattern", {**REGULAR, "alphabet": "up down", "pattern": "u"}, "one character"),
    ("notation as a letter", {**REGULAR, "alphabet": "a<", "pattern": "a"}, "<>{}"),
    ("half a character", {**REGULAR, "pattern": "a\ud800"}, "ud800"),
    ("a token $", {**REGULAR, "alphabet": "a$", "pattern": "a$"}, r"a token $ is \$"),
    ("a token &", {**REGULAR, "alphabet": "a&", "pattern": "a&a"}, r"\&"),
    ("a rule of names", {"task": "rewrite", "alphabet": "push pop", "pattern": "pip"}, "outside"),
    ("many counts", {**COUNTS, "alphabet": "abcd", "formula": "a == b == c == d + 1"}, "300,000"),
    ("many counts of long strings", LONG_COUNTS, "9,996"),
    ("many tokens", {"task": "consistent_pairs", "num_tokens": 126}, "2 to 125"),
    ("few keys", {"task": "associative_recall", "num_tokens": 1}, "2 to 125"),
    ("few tokens", {"task": "retrieval", "num_tokens": 1}, "at least 2"),
    ("much data", {"task": "selective_copy", "data_tokens": 300}, "no input has 0 to 10 tokens"),
    ("states of no automaton", {"task": "consistent_pairs", **NINE}, "no minimal automaton"),
    *(
        (f"a random language: {next(iter(own))}", {"task": "subregular", **own}, word)
        for own, word in RANDOM
    ),
    ("short tests", {"task": "even_pairs", "test_max_length": 1}, "test_max_length=1"),
    ("lengths the wrong way", {"task": "parity", "train_min_length": 11}, "train_min_length=11"),
    ("much memory", {**HUGE, "max_num_epochs": 30, "train_max_length": 10_000}, "train_size"),
    ("too many to be disjoint from", {**HUGE, "disjoint": True}, "max_num_epochs=100000"),
    *((f"not read: {name}", own, f"{name}={own[name]!r}: not read") for name, own in UNREAD),
    ("pairs without an automaton", DYCK_BORDER, "automaton"),
    ("border negatives without one", {"task": "dyck", "negatives": "border"}, "negatives='border'"),
    ("few pairs", {**BORDER, "test_strings": "random_and_border", "test_size": 3}, "at least 4"),
]
