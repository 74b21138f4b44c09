"""What models are trained and tested on, looked at before any is trained: strings, and readers."""

import json
from collections.abc import Callable, Container, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.launch.fields import PART_NAMES
from dashboard.server import visitors
from dashboard.server.shared_answers import ANSWERS
from dashboard.text import verbatim
from seqcls.config import PARTS, RunConfig
from seqcls.errors import SeqclsError
from seqcls.fields import test_set_key
from seqcls.interpretability.wording import EMPTY, percent
from seqcls.problem import Problem, resolve
from seqcls.shortcuts import READERS, training_key
from seqcls.tasks import TASKS
from sweeps.access import is_read_only
from sweeps.api.old_pages.strings import FirstStrings, StringsOfKind, first_strings
from sweeps.api.overlaps import near_obstacle
from sweeps.api.strings import (
    Reached,
    TestReached,
    distinct_tests,
    measure_readers,
    negatives_sentence,
)
from sweeps.grid.spec import parse_spec

SECONDS = 1.0
"""After so long without a change readers are fitted, and so often is looked whether they are."""

MOST_LOOKED_THROUGH = 1_000
"""Configurations that are looked through for different strings."""

MOST_SHOWN = 12
"""Different strings that can be looked at, of as many variants."""

MOST_READ = 4
"""Tests on which readers are fitted before anything is trained; each takes seconds."""

MOST_TOKENS = 2**22
"""Tokens that are drawn for readers beside a page, of training or of a test."""

OF_EACH = 10
"""Strings of each kind that are shown."""

BINS = 40
"""Bars of a histogram of lengths at most."""

Test = tuple[RunConfig, Mapping[str, Any]]
"""A configuration, and the values in which its strings differ from those of others."""

Take = Callable[[Mapping[str, Any]], None]


def show(submitted: tuple[str, ...], take: Take | None) -> None:
    """What is trained and tested on, where that can be drawn.

    Args:
        submitted: specifications as they were submitted.
        take: chooses values of fields, where there is a form for them.
    """
    # What is wrong with them is said by others.
    try:
        tests = _tests(submitted)
    except SeqclsError:
        return
    for said in dict.fromkeys(filter(None, map(_near_obstacle, tests[:MOST_SHOWN]))):
        st.caption(verbatim(said))
    _show_readers(tests, take)
    _show_strings(tests)


@lru_cache(maxsize=64)
def _tests(submitted: tuple[str, ...]) -> Sequence[Test]:
    specs = [parse_spec(json.loads(text)) for text in submitted]
    configs = (config for spec in specs for config in spec.configs())
    return distinct_tests(islice(configs, MOST_LOOKED_THROUGH))


def _near_obstacle(test: Test) -> str | None:
    """Why near negatives are asked for and cannot be had."""
    try:
        reason = near_obstacle(resolve(test[0]))
    except SeqclsError as error:
        reason = str(error)
    return None if reason is None else f"{_name(test)}: {reason}."


def _name(test: Test) -> str:
    config, fields = test
    return ", ".join([config.task, *(f"{name} = {value}" for name, value in fields.items())])


def _by_name(tests: Sequence[Test]) -> Mapping[str, Test]:
    return {_name(test): test for test in tests}


# Strings of each kind, drawn once somebody wants to see them.


def _show_strings(tests: Sequence[Test]) -> None:
    folded = st.expander("Look at the strings first", key="launch_strings", on_change="rerun")
    if not folded.open:
        return
    with folded:
        named = _by_name(tests[:MOST_SHOWN])
        name = next(iter(named))
        if len(named) > 1:
            name = st.selectbox("Strings of", list(named), key="launch_strings_of")
        if len(tests) > MOST_SHOWN:
            st.caption(f"The first {MOST_SHOWN} of {len(tests):,}; `seqcls draw` shows any.")
        part = st.segmented_control(
            "Part", PARTS, default="train", required=True, key="launch_strings_part"
        )
        problem = resolve(named[name][0])
        try:
            looked = visitors.ask(
                ("strings of each kind", problem.sampler(part)),
                partial(_draw, problem, part),
                "Drawing strings",
                ANSWERS,
            )
        except SeqclsError as error:
            st.caption(verbatim(f"These strings can't be drawn: {error}"))
            return
        _show_kinds(problem, part, looked)


def _draw(problem: Problem, part: str) -> FirstStrings:
    with TASKS.wrap_errors(problem.config.task):
        return first_strings(problem, part, OF_EACH)


def _show_kinds(problem: Problem, part: str, looked: FirstStrings) -> None:
    sampler, strings = problem.sampler(part), f"{PART_NAMES[part]} strings"
    first, last = looked.lengths[0], looked.lengths[-1]
    if looked.drawn_apart:
        st.caption(
            f"{looked.number:,} strings drawn to look at, in the same way as the "
            f"{sampler.epoch_size:,} {strings}; none is left out because it is trained on."
        )
    else:
        epoch = " of the first epoch" if part == "train" and not sampler.repeats else ""
        st.caption(f"All {looked.number:,} {strings}{epoch}, by how they were drawn.")
    if said := negatives_sentence({x.kind: sum(x.by_length) for x in looked.kinds}):
        st.caption(f"{said}.")
    rows = [
        {
            "kind": of_kind.kind or "inputs",
            "strings": sum(of_kind.by_length),
            "lengths": _bars(of_kind.by_length),
        }
        for of_kind in looked.kinds
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height="content",
        column_config={
            "kind": st.column_config.TextColumn("Kind", width="small"),
            "strings": st.column_config.NumberColumn("Strings", width="small", format="localized"),
            "lengths": st.column_config.BarChartColumn(
                f"Lengths, {first} to {last}", width=140, y_min=0
            ),
        },
    )
    # Pairs of tables, so that they keep their order where there is room for one alone.
    for number in range(0, len(looked.kinds), 2):
        pair = looked.kinds[number : number + 2]
        for column, of_kind in zip(st.columns(min(2, len(looked.kinds))), pair, strict=False):
            with column:
                _show_first(of_kind)


def _bars(by_length: Sequence[int]) -> list[int]:
    """Numbers of strings by length, neighboring lengths together where there are many."""
    width = -(-len(by_length) // BINS)
    return [sum(by_length[x : x + width]) for x in range(0, len(by_length), width)]


def _show_first(of_kind: StringsOfKind) -> None:
    shown = of_kind.first.sort_values("length", kind="stable")
    columns = [name for name in ("string", "target", "length") if name in shown]
    st.dataframe(
        shown[columns].replace("", EMPTY),
        hide_index=True,
        height="content",
        column_config={
            "string": st.column_config.TextColumn(
                (of_kind.kind or "input").capitalize(), width="medium"
            ),
            "target": st.column_config.TextColumn("Target", width="medium"),
            "length": st.column_config.NumberColumn("Length", width="small"),
        },
    )


# What readers reach that know no language, fitted beside the page.

READ = visitors.Beside[TestReached | SeqclsError]()
"""What readers reach on the tests of this server's visitors."""

WANTED = "launch tests to be read"
"""Which tests the page is about now; others need not be read any more."""


def _show_readers(tests: Sequence[Test], take: Take | None) -> None:
    asked = {test_key(config): (config, fields) for config, fields in tests if _is_small(config)}
    asked = dict(list(asked.items())[:MOST_READ])
    known = {key: READ.answer(key) for key in asked if READ.is_done(key)}
    remedy: dict[str, Any] = {}
    for key, made in known.items():
        _show_reached(made, _name(asked[key]) if len(tests) > 1 else "")
        remedy |= {} if isinstance(made, SeqclsError) else made.remedy
    if remedy and take is not None:
        values = ", ".join(f'{name} = "{value}"' for name, value in remedy.items())
        st.button(f"Take {values}", key="launch_take_near", on_click=take, args=(remedy,))
    if is_read_only():
        return
    if left := len(tests) - len(asked):
        more = "1 test" if left == 1 else f"{left:,} tests"
        st.caption(f"`seqcls shortcuts` says what readers reach on {more} more.")
    if waiting := {key: config for key, (config, _) in asked.items() if key not in known}:
        st.fragment(_look, run_every=SECONDS)(waiting, [])


def test_key(config: RunConfig) -> tuple[str, ...]:
    """Tells what readers are fitted on and asked about, and which fields would set it."""
    return training_key(resolve(config)), test_set_key(config), config.test_negatives


def _is_small(config: RunConfig) -> bool:
    problem = resolve(config)
    train, test = (max(1, x.lengths[-1]) for x in (problem.train, problem.test))
    # All that is trained on is drawn, where it is kept out of the test.
    trained = getattr(problem.test, "trained", None)
    drawn = problem.train.epoch_size if trained is None else trained.size
    return max(drawn * train, problem.test.epoch_size * test) <= MOST_TOKENS


def _look(waiting: Mapping[Any, RunConfig], drawn: list[bool]) -> None:
    if all(READ.is_done(key) for key in waiting):
        st.rerun()
    # The first drawing is that of the page; those that follow come after a pause.
    if drawn:
        begin_reading(waiting, st.session_state.setdefault(WANTED, set()))
        st.caption("Shortcut readers are being fitted to the training strings.")
    drawn.append(True)


def begin_reading(waiting: Mapping[Any, RunConfig], wanted: set[Any]) -> None:
    """Has readers fitted for these tests, and no longer for others that were wanted before."""
    wanted.clear()
    wanted.update(waiting)
    for key, config in waiting.items():
        READ.begin_making(key, partial(_read, config), partial(_is_left, key, wanted))


def _is_left(key: Any, wanted: Container[Any]) -> bool:
    return key not in wanted


def _read(config: RunConfig) -> TestReached | SeqclsError:
    try:
        with TASKS.wrap_errors(config.task):
            return measure_readers(resolve(config), {})
    except SeqclsError as error:
        return error


def _show_reached(made: TestReached | SeqclsError, name: str) -> None:
    of_test = f"{name}: " if name else ""
    if isinstance(made, SeqclsError):
        st.caption(verbatim(f"{of_test}readers can't be fitted: {made}."))
        return
    if made.advice is not None:
        say = st.info if made.remedy else st.caption
        say(verbatim(f"{of_test}{made.advice}."))
    else:
        said = [
            f"{percent(max(shares), 1)} {where}"
            for where in ("within", "beyond")
            if (shares := [x for each in made.readers if (x := getattr(each, where)) is not None])
        ]
        most = f"readers reach at most {' and '.join(said)} trained lengths."
        said_of = f"{of_test}shortcut" if of_test else "Shortcut"
        st.caption(verbatim(f"{said_of} {most if said else 'readers cannot be fitted.'}"))
    with st.expander("What each reader reaches", key=f"launch_readers {name}"):
        st.dataframe(
            pd.DataFrame([_row(each) for each in made.readers]),
            hide_index=True,
            height="content",
            column_config={
                "reader": st.column_config.TextColumn("Right by", width=140),
                "within": st.column_config.NumberColumn("Within, %", width="small", format="%.1f"),
                "beyond": st.column_config.NumberColumn("Beyond, %", width="small", format="%.1f"),
                "reason": st.column_config.TextColumn("Not fitted because"),
            },
        )


def _row(each: Reached) -> Mapping[str, Any]:
    within, beyond = (None if x is None else 100 * x for x in (each.within, each.beyond))
    row = {"reader": READERS[each.reader], "within": within, "beyond": beyond}
    return row if each.reason is None else {**row, "reason": each.reason}
