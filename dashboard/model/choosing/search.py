"""Finding a model among any number by what is typed: a run, a seed of a sweep, settings."""

import re
from typing import Any

import pandas as pd

from dashboard import data
from seqcls.config import MAX_MODEL_SEED, default_fields
from seqcls.errors import UnknownRunError
from seqcls.spelling import nearest
from sweeps.store.reading.selection import View

HELP = (
    "Type to find any other model: a seed (`12`), a run (`run 12`), a sweep and a seed "
    "(`all_initializations/2`), or settings, with or without a seed (`hidden_size=4 seed 12`)."
)
EXPECTED = "type a seed (12), a run (run 12), a sweep and a seed (heads/2), or settings (field=4)"


def find(text: str, sweep: str | None, limit: int) -> pd.DataFrame:
    """The models that are meant, the least accurate first.

    Args:
        text: what was typed.
        sweep: where seeds and settings are looked for; None for everywhere.
        limit: how many at most.

    Returns:
        As `data.models`, at least one row.

    Raises:
        UnknownRunError: no trained model is meant, or the text means none.
    """
    words = _words(text)
    name, slash, seed = text.strip().rpartition("/")
    if slash and name in set(data.memberships()["sweep"]):
        view = View(sweeps=(name,), model_seeds=(_number(text, seed),))
        models = data.worst_models(view, limit)
    elif words[:1] == ["run"]:
        models = data.model(_number(text, words[-1]))
    else:
        models = data.worst_models(_view(text, sweep), limit)
    if models.empty:
        in_sweep = f" in sweep {sweep!r}" if sweep and words[:1] != ["run"] and not slash else ""
        raise UnknownRunError(f"{text!r}: no trained model is like that{in_sweep}; {EXPECTED}")
    return models


def _words(text: str) -> list[str]:
    return text.replace(",", " ").replace("=", " = ").replace(":", " ").split()


def _view(text: str, sweep: str | None) -> View:
    """The models with the seeds and the settings that are named."""
    settings = data.settings()
    left = text
    # As they are written first: names and values may have spaces, commas and colons.
    for name in sorted(map(str, settings), key=len, reverse=True):
        values = sorted(settings[name].dropna().map(str).unique(), key=len, reverse=True)
        for value in values if f"{name}=".casefold() in left.casefold() else ():
            written = rf"(?<![^\s,]){re.escape(name)}={re.escape(value)}(?![^\s,])"
            if re.search(written, left, re.IGNORECASE):
                settings = settings[settings[name].map(str).str.casefold() == value.casefold()]
                left = re.sub(written, " ", left, flags=re.IGNORECASE)
                break
    seeds: list[int] = []
    # Of `name = value` and `seed number` the words are taken one after another.
    rest = [word for word in _words(left) if word != "="]
    while rest:
        word = rest.pop(0)
        if word.isdecimal():
            seeds.append(_number(text, word))
        elif word in ("seed", "model_seed") and rest:
            seeds.append(_number(text, rest.pop(0)))
        elif word in settings and rest:
            value = rest.pop(0)
            settings = settings[settings[word].map(str).str.casefold() == value.casefold()]
        elif word in default_fields():
            raise UnknownRunError(f"{text!r}: {word} is the same for all models; {EXPECTED}")
        else:
            known = nearest(word, [str(name) for name in settings])
            raise UnknownRunError(f"{text!r}: {known}; {EXPECTED}")
    everything = len(settings) == len(data.settings())
    config_ids = None if everything else tuple(settings.index.tolist())
    return View((sweep,) if sweep else (), tuple(seeds), config_ids)


def _number(text: str, word: Any) -> int:
    if not (word.isascii() and word.isdecimal()) or len(word) > 19 or int(word) > MAX_MODEL_SEED:
        raise UnknownRunError(f"{text!r}: expected a number, not {word!r}; {EXPECTED}")
    return int(word)
