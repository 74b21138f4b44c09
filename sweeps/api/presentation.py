"""A model's answers in sentences, and its states as data frames, one a figure. Pure functions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seqcls.config import RunConfig
from seqcls.interpretability.minimal import Nearest, Shortest
from seqcls.interpretability.trained_model import Answer
from seqcls.interpretability.wording import EMPTY, percent, score_text
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.problem import Problem, obstacle_of, resolve, tokenizer_of
from sweeps.results import BORDER_MEDIANS, BORDER_SHARES

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.patching import Patched
    from seqcls.interpretability.states_by_strings import Path, Patterns, Prefixes, Units


TEXTS = ("string", "target", "output")
"""The columns of tables whose texts are strings of the alphabet."""

ANY_WORDS = Words(
    *("string", "get {} wrong", "gets {} wrong", "wrongly answered", "task", "label or target"),
    "rightly answered",
)

_SIGNS = ("negative", "positive")


def words_of(*configs: RunConfig) -> Words:
    """What errors are called; as those of languages where no task's kind is known here."""
    known = {resolve(config).kind.words for config in configs if obstacle_of(config) is None}
    return ANY_WORDS if len(known) > 1 else next(iter(known), MISCLASSIFIED)


def display_strings(frame: "pd.DataFrame", *configs: RunConfig) -> "pd.DataFrame":
    """A table of strings as it is shown; what is looked up stays as it is stored.

    Args:
        frame: with any of the columns `TEXTS`.
        configs: of the models that it is about; their tasks have one alphabet.
    """
    tokenizer = next(filter(None, map(tokenizer_of, configs)), None)
    texts = [name for name in TEXTS if name in frame] if tokenizer is not None else []
    if tokenizer is None or not texts:
        return frame
    shown = frame[texts].map(tokenizer.display, na_action="ignore")
    return frame.assign(**{name: shown[name] for name in texts})


def display_of(config: RunConfig) -> Callable[[str], str]:
    """What shows a string of a configuration's task; as it is where that is not known here."""
    tokenizer = tokenizer_of(config)
    return str if tokenizer is None else tokenizer.display


def describe_proofs(runs: "pd.DataFrame", configs: Mapping[int, RunConfig]) -> list[str]:
    """What proofs found of each run, as `refuted by 10{25}`; empty where none is stored.

    Args:
        runs: config_id and, where any proof is stored, every_length and refuted_by.
        configs: theirs, by id; a string is shown as it is where its configuration is not there.
    """
    if "every_length" not in runs:
        return [""] * len(runs)
    said = []
    for row in runs[["config_id", "every_length", "refuted_by"]].to_dict("records"):
        result, string = row["every_length"], row["refuted_by"]
        if isinstance(string, str):
            known = configs.get(row["config_id"])
            shown = string if known is None else display_of(known)(string)
            result = f"{result} by {shown or 'the empty string'}"
        said.append(result if isinstance(result, str) else "")
    return said


def said_of(answer: Answer) -> str:
    """One string's label and the model's answer."""
    return f"{name_string(answer)}: {label_and_answer(answer)}"


def name_string(answer: Answer) -> str:
    """A string as it is shown; the empty one needs a name."""
    return answer.tokenizer.display(answer.string) or "the empty string"


def label_and_answer(answer: Answer) -> str:
    """What is right of a string, and what the model says."""
    writes = isinstance(answer.predicted, str)
    if answer.label is None:
        right = f"{'target' if writes else 'label'} not known"
    else:
        right = f"is {_show_answer(answer, answer.label)}"
    if not answer.is_answered:
        return f"{right}, and has no answer: what the model computes for it is NaN"
    number = f"{answer.number} {score_text(answer.logit)}"
    return f"{right}, predicted {_show_answer(answer, answer.predicted)} ({number})"


def _show_answer(answer: Answer, said: bool | str) -> str:
    """What is right, or what the model says: a sign of a language, else text."""
    if isinstance(said, str):
        return answer.tokenizer.display(said) or EMPTY
    return _SIGNS[int(said)]


def whose_known(problem: Problem) -> str:
    """Which strings are meant by all, where nobody knows what is right of the others."""
    return "" if problem.known_strings is None else f" whose {problem.kind.words.right} is known"


def shortest_sentences(shortest: Shortest, words: Words, whose: str = "") -> list[str]:
    """What trying all strings, or those of `whose_known`, has found."""
    if shortest.length is None:
        return [
            f"all {shortest.tried:,} {words.plural('')}{whose} of up to {shortest.max_length} "
            f"tokens are {words.hit}"
        ]
    said = [
        f"the shortest failing {words.plural('')} have {shortest.length} tokens: "
        f"{shortest.count:,} of them ({shortest.tried:,} {words.plural('')} tried, all{whose} up "
        "to that length)"
    ]
    said += [f"  {name_string(answer)}: {label_and_answer(answer)}" for answer in shortest.answers]
    left = shortest.count - len(shortest.answers)
    return [*said, f"  and {left:,} more"] if left else said


def nearest_sentence(nearest: Nearest, given: Answer, words: Words, whose: str = "") -> str:
    """What the search for the nearest right string, of all or of `whose_known`, has found."""
    tried = f"{nearest.tried:,} {words.plural('')} tried"
    if nearest.answer is None and not nearest.tried:
        return f"of no {words.string} within {nearest.edits} edits is it known what is right"
    if nearest.answer is None:
        all_of_them = "" if nearest.complete else ", not all of them"
        return (
            f"no {words.string}{whose} within {nearest.edits} edits is {words.hit} "
            f"({tried}{all_of_them})"
        )
    near = how_near(nearest.edits, nearest.answer, given)
    return (
        f"nearest {words.hit} {words.string}{whose}: {name_string(nearest.answer)}, {near}: "
        f"{label_and_answer(nearest.answer)}"
    )


def how_near(edits: int, found: Answer, given: Answer) -> str:
    """How many edits a string that was found is away, and what it has in common with the given."""
    away = "1 edit away" if edits == 1 else f"{edits} edits away"
    if given.label is None:
        same = "same" if found.predicted == given.predicted else "different"
        return f"{away}, {same} prediction"
    if found.predicted == given.predicted:
        return f"{away}, same prediction, different label"
    return f"{away}, same label, different prediction" if found.label == given.label else away


LEAST_WEIGHT = 0.00005
"""Half of the last of four decimals: less would be written as 0.0000."""
WEIGHT_STEPS = 20

LISTED = 12
"""States that turn the answer of which a table shows no more."""


def head_frame(patterns: "Patterns", block: int, head: int, *, whole: bool = False) -> pd.DataFrame:
    """Query and key (places), weight of one head, without weights that round to 0.0000."""
    weights = patterns.weights[block, head]
    query, key = np.nonzero((weights >= LEAST_WEIGHT) | whole)
    return pd.DataFrame({"query": query, "key": key, "weight": weights[query, key]})


def output_attention_frame(patterns: "Patterns", start: int, block: int, head: int) -> pd.DataFrame:
    """Row (of the token that is written), letter (place of the token read), weight of one head.

    Args:
        patterns: of an input with its output.
        start: the row of `SEP`, from which on tokens are written; 0 where the output is apart.
    """
    frame = head_frame(patterns, block, head)
    frame = frame[frame["query"] >= start]
    return pd.DataFrame(
        {"row": frame["query"] - start, "letter": frame["key"], "weight": frame["weight"]}
    ).reset_index(drop=True)


def pattern_runs(patterns: "Patterns") -> pd.DataFrame:
    """What small pictures of all heads are made of: neighbors of about one weight as one piece.

    block, head, query and rows (places that attend), first and last (places attended to), weight
    in steps of `1 / WEIGHT_STEPS`. The first piece of each head is the whole of it, of weight 0.
    """
    levels = np.rint(patterns.weights * WEIGHT_STEPS).astype(int)
    starts = np.diff(levels, axis=3, prepend=-1) != 0
    block, head, query, first = np.nonzero(starts)
    tokens = levels.shape[3]
    # In the order of the array a piece ends before the next begins, or with its row.
    last = np.where(np.roll(first, -1) == 0, tokens, np.roll(first, -1)) - 1
    level = levels[block, head, query, first]
    pieces = pd.DataFrame(
        {
            "block": [patterns.number_of(x) for x in block.tolist()],
            "head": head,
            "query": query,
            "rows": 1,
            "first": first,
            "last": last,
            "weight": level / WEIGHT_STEPS,
        }
    )
    wholes = pieces[["block", "head"]].drop_duplicates()
    wholes = wholes.assign(query=0, rows=tokens, first=0, last=tokens - 1, weight=0.0)
    return pd.concat([wholes, pieces[pieces["weight"] > 0]], ignore_index=True)


def prefixes_frame(prefixes: "Prefixes") -> pd.DataFrame:
    """One row a prefix: length, token (its last), logit, label."""
    return pd.DataFrame(
        {
            "length": range(len(prefixes.logits)),
            "token": prefixes.tokens,
            "logit": prefixes.logits,
            "label": prefixes.labels,
        }
    )


def layer_frame(units: "Units", state: str, layer: int) -> pd.DataFrame:
    """place, unit, value: of one layer its state (`state`), or one of its gates."""
    values = (units.states if state == "state" else units.gates[state])[layer]
    place, unit = np.indices(values.shape).reshape(2, -1)
    return pd.DataFrame({"place": place, "unit": unit, "value": values.ravel()})


def path_frame(path: "Path", tokens: tuple[str, ...]) -> pd.DataFrame:
    """place, token, first and second (principal components)."""
    return pd.DataFrame(
        {
            "place": range(len(tokens)),
            "token": tokens,
            "first": path.points[:, 0],
            "second": path.points[:, 1],
        }
    )


def patched_frame(patched: "Patched", most_units: int | None = None) -> pd.DataFrame:
    """site, place (of those that it has), base_token, source_token, logit, restored, flips.

    Args:
        most_units: how many of a recurrent network's units to keep, those that restore most.
    """
    units = patched.most_restoring_units(len(patched.sites) if most_units is None else most_units)
    restored, flips = patched.restored, patched.flips
    rows = [
        (
            site.text,
            place,
            patched.base_tokens[place],
            patched.source_tokens[place],
            float(patched.logits[row, place]),
            float(restored[row, place]),
            bool(flips[row, place]),
        )
        for row, site in enumerate(patched.sites)
        if site.name != "unit" or row in units
        for place in np.flatnonzero(patched.is_place[row]).tolist()
    ]
    columns = ["site", "place", "base_token", "source_token", "logit", "restored", "flips"]
    return pd.DataFrame(rows, columns=columns)


def flip_table(patched: "Patched") -> pd.DataFrame:
    """The states that turn the answer, ranked."""
    rows = [
        {
            "state": patched.sites[site].text,
            "place": int(place),
            "base token": patched.base_tokens[place],
            "source token": patched.source_tokens[place],
            patched.unit: round(float(patched.logits[site, place]), 4),
            "restored": percent(patched.restored[site, place], 0),
        }
        for site, place in patched.ranked
    ]
    return pd.DataFrame(rows)


def border_sentence(accuracies: pd.DataFrame) -> str:
    """How models do on random strings and on border pairs; empty where no test has these.

    Args:
        accuracies: one row a model, with the columns of `BORDER_SHARES`; of several, those on
            longer strings are missing where a model has not learned.
    """
    medians = accuracies[list(BORDER_SHARES)].median().dropna()
    accuracy, words = "Median accuracy", BORDER_MEDIANS
    if len(accuracies) == 1:
        accuracy, words = "Accuracy", BORDER_SHARES
    said = [f"{words[str(name)]} {percent(x, 1)}" for name, x in medians.items()]
    return f"{accuracy}: {'; '.join(said)}." if said else ""
