"""Previews of a sweep before training, on request: strings, shortcuts, theory."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice

import pandas as pd
import streamlit as st

from dashboard import page
from dashboard.section import Section
from dashboard.server import visitors
from dashboard.text import error_text
from dashboard.training import offer
from dashboard.training.beside import Beside
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences, say
from seqcls.config import STRING_PARTS, RunConfig
from seqcls.errors import SeqclsError
from seqcls.fields import test_set_key
from seqcls.interpretability.wording import EMPTY
from seqcls.problem import Problem, resolve
from seqcls.shortcuts import READERS, training_key
from seqcls.tasks import TASKS
from seqcls.theory.predictions import theory_of
from sweeps.access import is_read_only
from sweeps.api import overlaps
from sweeps.api.strings import TestReached, distinct_tests, first_strings, measure_readers
from sweeps.naming import name_configurations

add_columns(
    {
        "look_kind": Column("Drawn as", width=110),
        "look_target": Column("Target", "string", width=300),
        "look_reader": Column("Right by", width=300),
        "look_within": Column("Trained lengths", "percent", width=120),
        "look_beyond": Column("Longer", "percent", width=120),
        "look_obstacle": Column("Not fitted because", width=400),
        "look_says": Column("What theory says", width=820),
    }
)
add_sentences(
    {
        "drawn": "{n:,} {part} strings, of {first} to {last} tokens: {kinds}.",
        "drawn_apart": "They are drawn to look at, as the {n:,} of an epoch are.",
        "no_reader": "No shortcut reader can be fitted.",
        "shortcuts_reach": "Shortcuts reach at most {most} of {where} lengths.",
        "theory_of": "What theory says of strings of every length, of {n} of {of} configurations.",
    }
)

LOOKS = ("Strings", "Shortcuts", "Theory", "Overlap")
PART_NAMES = {"train": "training", "validation": "validation", "test": "test"}

MOST_LOOKED_THROUGH = 1_000
"""Configurations that are looked through for different strings."""

MOST_SHOWN = 12
"""Different strings that can be looked at, of as many configurations."""

MOST_CONFIGURATIONS = 60
"""Most configurations in the table of theory."""

MOST_TOKENS = 2**22
"""Tokens that are drawn for readers beside a page, of training or of a test."""

OF_EACH = 8
"""Strings of each kind that are shown."""

SECONDS = 1.0
"""So often is looked whether readers are fitted."""

READ = Beside[TestReached | SeqclsError]("readers")
"""Results of shortcut readers on previewed tests, for all sessions of the server."""


def show(key: offer.Submitted) -> None:
    """Draws the choice, and what is chosen.

    Args:
        key: specifications as they were submitted, all of which can be trained.
    """
    chosen = st.segmented_control(
        "Look before you train", LOOKS, key="look", bind="query-params", persist_state="session"
    )
    try:
        if chosen == "Strings":
            _show_strings(key)
        elif chosen == "Shortcuts":
            _show_shortcuts(key)
        elif chosen == "Theory":
            page.render(theory(key), "theory")
        elif chosen == "Overlap":
            question = ("overlap of", key)
            overlap = visitors.ask(question, partial(_overlap, key), "Drawing strings")
            sentence = overlap or "Nothing is known of what a test shares with training."
            st.markdown(page.plain(sentence))
    except SeqclsError as error:
        st.error(page.plain(error_text(error)))


@lru_cache(maxsize=64)
def _tests(key: offer.Submitted) -> Mapping[str, RunConfig]:
    """A configuration of each way to draw strings, by the values in which these differ."""
    configs = (config for spec in offer.specs_of(key) for config in spec.configs())
    tests = distinct_tests(islice(configs, MOST_LOOKED_THROUGH))
    return {
        ", ".join([config.task, *(f"{x} = {y}" for x, y in fields.items())]): config
        for config, fields in tests[:MOST_SHOWN]
    }


def _choose_test(key: offer.Submitted) -> RunConfig:
    tests = _tests(key)
    if len(tests) == 1:
        return next(iter(tests.values()))
    name = st.selectbox("Of", list(tests), key="strings of")
    return tests[name if name in tests else next(iter(tests))]


def _show_strings(key: offer.Submitted) -> None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        config = _choose_test(key)
    with right:
        part = st.segmented_control(
            "Part", STRING_PARTS, default="train", required=True, key="strings part"
        )
    problem = resolve(config)
    drawn = visitors.ask(
        ("strings of each kind", problem.sampler(str(part))),
        partial(strings, problem, str(part)),
        "Drawing strings",
    )
    page.render(drawn, "strings")


def strings(problem: Problem, part: str) -> Section:
    """The first strings of a part, some of each kind, and how many of each there are."""
    with TASKS.wrap_errors(problem.config.task):
        looked = first_strings(problem, part, OF_EACH)
    kinds = ", ".join(f"{n:,} {kind or 'inputs'}" for kind, n in looked.numbers.items())
    ends = {"first": looked.lengths[0], "last": looked.lengths[-1]}
    says = [
        say("drawn", n=sum(looked.numbers.values()), part=PART_NAMES[part], kinds=kinds, **ends)
    ]
    if looked.drawn_apart:
        says.append(say("drawn_apart", n=problem.sampler(part).epoch_size))
    if (reason := overlaps.near_obstacle(problem)) is not None:
        says.append(f"{reason[0].upper()}{reason[1:]}.")
    table = looked.first.drop(columns="label", errors="ignore").replace({"string": {"": EMPTY}})
    table["kind"] = table["kind"].replace("", "input")
    table = table.rename(columns={"target": "look_target", "kind": "look_kind"})
    return Section("", tuple(says), table)


def theory(key: offer.Submitted) -> Section:
    """Theoretical predictions for each network and task."""
    every = dict(enumerate(config for spec in offer.specs_of(key) for config in spec.configs()))
    some = dict(islice(every.items(), MOST_CONFIGURATIONS))
    named = name_configurations(some)
    rows = [
        {
            "configuration": named[n],
            "look_says": theory_of(x.changed | {"task": x.task}).first.sentence,
        }
        for n, x in some.items()
    ]
    return Section("", (say("theory_of", n=len(some), of=len(every)),), pd.DataFrame(rows))


def _overlap(key: offer.Submitted) -> str | None:
    """Reports the share of test strings trained on, and the accuracy of answers by length alone."""
    return overlaps.trained_on(x for spec in offer.specs_of(key) for x in spec.configs())


# What readers reach that know no language, fitted beside the page.


def _show_shortcuts(key: offer.Submitted) -> None:
    config = _choose_test(key)
    # Readers depend on what they are fitted to and tested on, and on no network.
    test = (training_key(resolve(config)), test_set_key(config), config.test_negatives)
    if READ.is_done(test):
        page.render(shortcuts(READ.answer(test)), "shortcuts")
    elif is_read_only() or not _is_small(config):
        st.caption("`seqcls shortcuts FILE.toml` says what shortcut readers reach on this test.")
    else:
        READ.begin(test, partial(_read, config))
        st.caption("Shortcut readers are being fitted to the training strings.")
        page.rerun_when(lambda: READ.is_done(test), SECONDS)


def _is_small(config: RunConfig) -> bool:
    problem = resolve(config)
    train, test = (max(1, x.lengths[-1]) for x in (problem.train, problem.test))
    # All training strings are drawn if the test excludes them.
    trained = getattr(problem.test, "trained", None)
    drawn = problem.train.epoch_size if trained is None else trained.size
    return bool(max(drawn * train, problem.test.epoch_size * test) <= MOST_TOKENS)


def _read(config: RunConfig) -> TestReached | SeqclsError:
    try:
        # A plug-in's task may raise anything, which becomes a `SeqclsError` here.
        with TASKS.wrap_errors(config.task):
            return measure_readers(resolve(config), {})
    except SeqclsError as error:
        # Returned rather than raised: it is what is known of this test, and is not tried again.
        return error


def shortcuts(made: TestReached | SeqclsError) -> Section:
    """Accuracy of shortcut readers, and how to make the test harder for them."""
    if isinstance(made, SeqclsError):
        return Section("", (f"{say('no_reader')} {made}.",))
    rows = pd.DataFrame(
        [
            {
                "look_reader": READERS[x.reader],
                "look_within": x.within,
                "look_beyond": x.beyond,
                "look_obstacle": x.reason,
            }
            for x in made.readers
        ]
    )
    sentences: Sequence[str] = [f"{made.advice}."] if made.advice else []
    if not sentences and not rows.empty:
        for place, where in (("look_within", "trained"), ("look_beyond", "longer")):
            best = rows[place].astype(float).max()
            if pd.notna(best):
                sentences = [*sentences, say("shortcuts_reach", most=f"{best:.1%}", where=where)]
    return Section("", tuple(sentences), rows.dropna(axis="columns", how="all"))
