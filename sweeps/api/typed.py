"""Tasks and networks as people type them, a list in a line: `(ab|ba)*, even pairs`.

This is the notation of forms and of `seqcls try`, and is converted to a specification. A task is a
name, a regular expression, a formula over letter counts, a rewriting, a class of languages or a
file; a network is written in the words of result tables. Each may be followed by settings, as
`dyck max_depth=3`. Commas, spaces and line ends within brackets or quotation marks do not separate.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, get_args

from seqcls.config import ABOUT, LanguageClass, RunConfig, default_fields
from seqcls.errors import ConfigError, SpecError
from seqcls.lookup import language
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.strings.datasets import dataset_of
from seqcls.tasks import TASKS
from seqcls.text import OTHER_NAMES, nearest
from sweeps.api.selecting import value_of
from sweeps.grid.written_spec import listed_values
from sweeps.naming import WORDS, say_setting

Fields = dict[str, Any]

MOST_LETTERS = 40
"""Maximum number of characters of an alphabet in a description."""

MOST_WORDS = 4
"""Maximum number of words of a phrase such as `recurrent encoder-decoder`."""

_SETTING = re.compile(r"([A-Za-z_]+)=(?!=)(.*)", re.DOTALL)
_COMPARISON = re.compile(r"[<>=!]=|[<>%]")
_EXPRESSION = re.compile(r"[()*+|&?.\[\]{}\\]")
_SIGNS = r"\\[A-Za-z]|\{[\d,]*\}|[()*+|&?.\[\]{}\\^$\s-]"
"""Signs of regular expressions that are no letters."""

_KEYWORDS = {"and", "or", "not"}
_USUAL_ALPHABETS = ("ab", "01", "abc")
_NUMBER = r"(\d[\d.e-]*)"
_DASHED = re.compile(r"(\d{1,19})\s*(?:-|\u2013|\.{2,})\s*(\d{1,19})")

_OTHER_PHRASES = {
    "{} units": "hidden_size", "{} wide": "hidden_size", "{} layers": "num_blocks",
    "{} layer": "num_blocks", "{} block": "num_blocks", "learning rate {}": "learning_rate",
}  # fmt: skip
_OTHER_NAMES = {**OTHER_NAMES, "width": "hidden_size"}


@dataclass(frozen=True)
class Entry:
    """An item of a list, and its interpretation."""

    text: str
    fields: Mapping[str, Any]
    """The fields of a configuration that it sets."""
    read_as: str
    """A description, with the alphabet of a task; letters are between backquotes."""


def parts_of(text: str, between: str = ",\n") -> list[str]:
    """Splits a text at signs outside of brackets and quotation marks."""
    depth, quote, parts = 0, "", [""]
    for sign in text:
        if quote or sign in "\"'":
            quote = "" if sign == quote else quote or sign
        else:
            depth = max(0, depth + (sign in "([{") - (sign in ")]}"))
        if sign in between and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def tasks_of(text: str, files: Mapping[str, str] | None = None) -> list[Entry]:
    """Reads a list of tasks.

    Args:
        files: the digests of files of strings or automata that may occur, by name.

    Raises:
        ConfigError: a part is no task; in one line, with the nearest name that is known.
    """
    return [_task(part, files or {}) for part in parts_of(text)]


def phrases_of(text: str) -> list[str]:
    """Returns the items of a list without their settings."""
    parts = [parts_of(part, " \t") for part in parts_of(text)]
    return [" ".join(x for x in part if not _SETTING.fullmatch(x)) for part in parts]


def networks_of(text: str) -> list[Entry]:
    """Reads a list of networks.

    Raises:
        ConfigError: a word is no part of a network; with the nearest name that is known.
    """
    return [_network(part) for part in parts_of(text)]


def _task(part: str, files: Mapping[str, str]) -> Entry:
    words = parts_of(part, " \t")
    settings = [word for word in words if _SETTING.fullmatch(word)]
    words = [word for word in words if word not in settings]
    alphabet = {}
    if len(words) > 2 and words[-2] == "over":
        alphabet = {"alphabet": _unquote(words[-1])}
        words = words[:-2]
    phrase, known = " ".join(words), TASKS
    named = re.sub(r"[\s-]+", "_", phrase).lower()
    kind, fields = "", {"task": named}
    if (digest := files.get(_unquote(phrase))) is not None:
        fields = {"task": dataset_of(digest).task, "dataset": digest}
    elif named in known:
        pass
    elif phrase in get_args(LanguageClass):
        fields = {"task": "subregular", "language_class": phrase}
    # Before formulas, since an arrow contains the sign of a comparison.
    elif "->" in phrase:
        kind = "rewriting"
        pattern, _, replacement = map(str.strip, phrase.partition("->"))
        fields = {"task": "rewrite", "pattern": _unquote(pattern)}
        fields |= {"replacement": _unquote(replacement)}
    # Before expressions, since a formula may have brackets and signs of theirs.
    elif _COMPARISON.search(phrase):
        kind, fields = "formula", {"task": "counting", "formula": _unquote(phrase)}
    elif phrase != _unquote(phrase) or _EXPRESSION.search(phrase):
        kind, fields = "regular expression", {"task": "regular", "pattern": _unquote(phrase)}
    else:
        hint = nearest(named, [*known, *files])
        raise ConfigError(f"task {part!r}: {hint} (an expression is written as (ab|ba)* or 'ab')")
    fields |= alphabet | dict(_setting(x, part, of_network=False) for x in settings)
    if "alphabet" in TASKS[fields["task"]].reads and "alphabet" not in fields:
        fields |= _infer_alphabet(fields)
    try:
        task = language(fields["task"], default_fields() | fields)
    except ConfigError as error:
        raise ConfigError(f"task {part!r}: {error}") from None
    over = f"over {_list_letters(task.alphabet)}"
    return Entry(part, fields, f"{kind} {over}" if kind else f"{over}: {task.describe()}")


def _list_letters(alphabet: Sequence[str]) -> str:
    text = alphabet if isinstance(alphabet, str) else " ".join(alphabet)
    if len(text) <= MOST_LETTERS:
        return f"`{text}`"
    return f"{len(alphabet):,} tokens, `{text[:MOST_LETTERS]}` …"


def _infer_alphabet(fields: Fields) -> Fields:
    """Infers the alphabet of an expression or a formula; a single letter gets a second one."""
    if "formula" in fields:
        names = re.findall(r"#(\S)|([^\W\d]\w*)", fields["formula"])
        letters = sorted({one or other for one, other in names} - _KEYWORDS)
    else:
        # A reference such as \1 in the replacement is no letter.
        written = fields.get("pattern", "") + re.sub(r"\\\d", "", fields.get("replacement", ""))
        letters = sorted({*re.sub(_SIGNS, "", written)})
    if not letters:
        return {}
    # A single letter gets one partner, as in ab or 01; several may come from abc.
    usual = (x for x in _USUAL_ALPHABETS[: 2 if len(letters) == 1 else 3] if {*letters} <= {*x})
    return {"alphabet": next(usual, (" " if max(map(len, letters)) > 1 else "").join(letters))}


def _network(part: str) -> Entry:
    fields: Fields = {}
    words = parts_of(part, " \t")
    while words:
        if _SETTING.fullmatch(words[0]):
            name, value = _setting(words.pop(0), part, of_network=True)
            fields[name] = value
            continue
        # The longest phrase first: recurrent encoder-decoder is one network, not two.
        for number in range(min(MOST_WORDS, len(words)), 0, -1):
            phrase = " ".join(words[:number])
            if (found := _phrase(phrase, part)) is not None:
                fields |= found
                words = words[number:]
                break
        else:
            hint = nearest(words[0].lower(), [*MODELS, *POSITIONS])
            raise ConfigError(f"network {words[0]!r}: {hint}")
    network = str(fields.get("architecture", "transformer"))
    return Entry(part, fields, ", ".join(say_setting(*x, network) for x in fields.items()))


def _phrase(phrase: str, part: str) -> Fields | None:
    """Returns the field and value of a phrase about a network; None where it is no phrase."""
    plain = phrase.lower()
    named = re.sub(r"[\s-]+", "_", plain)
    for field, known in (("architecture", MODELS), ("positions", POSITIONS)):
        if named in known:
            return {field: named}
    fixed, templates = _phrases()
    if plain in fixed:
        field, value = fixed[plain]
        return {field: value}
    for template, field in templates:
        if match := template.fullmatch(plain):
            return {field: value_of(field, match[1], f"network {part!r}: {phrase}")}
    return None


@lru_cache(maxsize=1)
def _phrases() -> tuple[dict[str, tuple[str, Any]], list[tuple[re.Pattern[str], str]]]:
    """Returns the phrases of tables for settings of networks, and templates with a number."""
    fixed: dict[str, tuple[str, Any]] = {}
    templates = dict(_OTHER_PHRASES)
    for field, words in WORDS.items():
        if field in ABOUT and ABOUT[field].group in ("Network", "Training"):
            for value, phrase in words.items():
                if "{}" not in phrase:
                    fixed.setdefault(phrase.lower(), (field, value))
                elif value == "" and phrase != "{}":
                    templates[phrase] = field
    made = [
        (re.compile(re.escape(phrase.lower()).replace(r"\{\}", _NUMBER)), field)
        for phrase, field in templates.items()
    ]
    return fixed, made


def _setting(word: str, part: str, *, of_network: bool) -> tuple[str, Any]:
    match = _SETTING.fullmatch(word)
    assert match is not None
    name, text = match[1].lower(), _unquote(match[2])
    if of_network or name not in RunConfig.model_fields:
        name = _OTHER_NAMES.get(name, name)
    if name not in RunConfig.model_fields:
        raise ConfigError(f"{part!r}: {name!r}: {nearest(name, list(RunConfig.model_fields))}")
    return name, value_of(name, text, f"{part!r}: {name}")


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def values_of(field: str, text: str) -> list[Any]:
    """Reads the values of a setting, separated by commas; integers may be a range such as `0..7`.

    Raises:
        ConfigError, SpecError: one of them is not valid for this setting.
    """
    values: list[Any] = []
    for part in parts_of(text):
        listed = listed_values(field, part)
        items = listed if isinstance(listed, list) else [_unquote(part)]
        values += [value_of(field, str(one), f"{field}={part}") for one in items]
    return values


def seeds_of(text: str) -> str | list[int]:
    """Reads model seeds: `8` means the first eight, `0-9` means `0..9`."""
    if (number := text.strip()).isdecimal() and 0 < len(number) < 20 and int(number) > 0:
        return f"0..{int(number) - 1}"
    if dashed := _DASHED.fullmatch(text.strip()):
        return f"{dashed[1]}..{dashed[2]}"
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() and len(part) < 20 for part in parts):
        return [int(part) for part in parts]
    return text.strip()


def spell_task(task: str, settings: Mapping[str, Any]) -> str:
    """Writes a task with its settings as it is typed."""
    return " ".join([task.replace("_", " "), *_spell(settings)])


def _spell(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        text = value if isinstance(value, str) else json.dumps(value)
        plain = re.fullmatch(r"[\w.+-]+", text)
        quote = "'" if '"' in text else '"'
        yield f"{name}={text if plain else f'{quote}{text}{quote}'}"


def specification(
    name: str,
    tasks: Sequence[Entry],
    networks: Sequence[Entry],
    seeds: str | list[int],
    settings: Mapping[str, Sequence[Any]],
) -> Fields:
    """Returns the specification of every network on every task, as a table, with the base of a
    small Transformer.

    Args:
        settings: values that all share; several make a configuration each.

    Raises:
        SpecError: there is no task or no network.
    """
    if not tasks or not networks:
        missing = "task, as even pairs" if not tasks else "network, as transformer rotary"
        raise SpecError(f"name at least one {missing}")
    own = [{**task.fields, **net.fields} for task, net in product(tasks, networks)]
    named = {field for entry in own for field in entry}
    every = {field: values[0] for field, values in settings.items() if len(values) == 1}
    # A field set by one network has its shared value in the others.
    own = [{**{x: y for x, y in every.items() if x in named}, **entry} for entry in own]
    shared = {x: y for x, y in own[0].items() if all(x in z and z[x] == y for z in own)}
    fixed = {x: y for x, y in every.items() if x not in named} | shared
    axes = {field: list(values) for field, values in settings.items() if len(values) > 1}
    several = [{x: y for x, y in entry.items() if x not in shared} for entry in own]
    made: Fields = {"name": name, "model_seeds": seeds, "base": "small_transformer", "fixed": fixed}
    made |= {"axes": axes} if axes else {}
    return made | ({"configurations": several} if len(several) > 1 else {})
