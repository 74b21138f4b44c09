"""Tasks and networks typed as lists: their configurations, and refusals."""

from typing import Any

import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SpecError
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.strings.datasets import remember
from seqcls.tasks import TASKS
from sweeps.api import typed
from sweeps.datasets import read_dataset
from sweeps.grid.spec import parse_spec
from sweeps.naming import name_configurations

LENGTHS = {"train_max_length": [20], "test_max_length": [100]}


def made(
    tasks: str, networks: str = "transformer", settings: dict[str, list[Any]] | None = None
) -> list[RunConfig]:
    """The configurations that a form of these lists trains."""
    entries = typed.tasks_of(tasks), typed.networks_of(networks)
    table = typed.specification("s", *entries, typed.seeds_of("8"), LENGTHS | (settings or {}))
    spec = parse_spec(table)
    assert spec.num_runs() == 8 * len(list(spec.configs()))
    return list(spec.configs())


def test_lists_of_tasks_and_networks_are_combined() -> None:
    configs = made("(ab|ba)*, even pairs", "transformer none, transformer rotary, lstm")
    settings = {(x.task, x.pattern, x.architecture, x.positions, x.readout) for x in configs}
    assert settings == {
        (task, pattern, architecture, positions, readout)
        for task, pattern in (("regular", "(ab|ba)*"), ("even_pairs", ""))
        for architecture, positions, readout in (
            ("transformer", "none", "first"), ("transformer", "rotary", "first"),
            ("lstm", "none", "last"),
        )
    }  # fmt: skip
    lengths = {(x.train_max_length, x.validation_max_length, x.test_max_length) for x in configs}
    assert lengths == {(20, 20, 100)}


TASKS_TYPED: dict[str, dict[str, Any]] = {
    "even pairs": {"task": "even_pairs"},
    "Even-Pairs": {"task": "even_pairs"},
    "(a|b)*abb": {"task": "regular", "alphabet": "ab", "pattern": "(a|b)*abb"},
    "[ab]{2,3}c*": {"task": "regular", "alphabet": "abc", "pattern": "[ab]{2,3}c*"},
    "(0,1)*": {"task": "regular", "alphabet": ",01", "pattern": "(0,1)*"},
    "(ab)* over abc": {"task": "regular", "alphabet": "abc", "pattern": "(ab)*"},
    "1*": {"task": "regular", "alphabet": "01", "pattern": "1*"},
    '"ab"': {"task": "regular", "alphabet": "ab", "pattern": "ab"},
    "a > b": {"task": "counting", "alphabet": "ab", "formula": "a > b"},
    "a == b and c <= 3": {"task": "counting", "alphabet": "abc", "formula": "a == b and c <= 3"},
    "push > pop": {"task": "counting", "alphabet": "pop push", "formula": "push > pop"},
    'counting alphabet="push pop" formula="push > pop"': {
        "task": "counting", "alphabet": "push pop", "formula": "push > pop"
    },
    "ab -> b": {"task": "rewrite", "alphabet": "ab", "pattern": "ab", "replacement": "b"},
    r"(a)b -> \1": {"task": "rewrite", "alphabet": "ab", "pattern": "(a)b", "replacement": r"\1"},
    "SL width=3": {"task": "subregular", "language_class": "SL", "width": 3},
    "dyck max_depth=3 bracket_types=2": {"task": "dyck", "max_depth": 3, "bracket_types": 2},
    "parity answers=prefixes": {"task": "parity", "answers": "prefixes"},
    "copy num_tokens=3": {"task": "copy", "num_tokens": 3},
    "paragraph": {"task": "paragraph"},
}  # fmt: skip


@pytest.mark.parametrize("text", TASKS_TYPED)
def test_typed_task_gives_its_fields(text: str) -> None:
    (entry,) = typed.tasks_of(text)
    assert entry.fields == TASKS_TYPED[text]
    assert "over `" in entry.read_as


def test_commas_in_brackets_or_quotes_do_not_separate() -> None:
    parts = typed.parts_of('(a,b)*, "x, y"\n[ab]{1,2},, even pairs ,')
    assert parts == ["(a,b)*", '"x, y"', "[ab]{1,2}", "even pairs"]


def test_every_task_can_be_typed_with_its_settings() -> None:
    needed = {
        "counting": {"alphabet": "push pop", "formula": "push > pop"},
        "regular": {"alphabet": "ab", "pattern": "(ab)*"},
        "rewrite": {"alphabet": "ab", "pattern": "ab", "replacement": "b"},
    }
    for task in TASKS.usable(list(TASKS)):
        if "dataset" not in TASKS[task].reads:
            own = needed.get(task, {})
            (entry,) = typed.tasks_of(typed.spell_task(task, own))
            assert entry.fields == {"task": task, **own}


def test_network_can_be_typed_as_tables_name_it() -> None:
    for architecture in MODELS.usable(list(MODELS)):
        (entry,) = typed.networks_of(architecture.replace("_", " "))
        assert entry.fields == {"architecture": architecture}
    for positions in POSITIONS.usable(list(POSITIONS)):
        (entry,) = typed.networks_of(f"transformer {positions}")
        assert entry.fields["positions"] == positions
    lists = "transformer ALiBi 1 block width 16, transformer rotary 1 head, Gated DeltaNet, "
    configs = made("parity", f"{lists} lstm 64 units 2 layers, transformer causal lr=0.01")
    named = name_configurations(dict(enumerate(configs)))
    for number, name in named.items():
        (entry,) = typed.networks_of(name.replace(",", ""))
        differing = {x: y for x, y in entry.fields.items() if getattr(configs[number], x) != y}
        assert not differing, name


def test_unknown_word_is_refused_with_the_nearest_known_one() -> None:
    refused = {
        "even pears": "did you mean 'even_pairs'?",
        "dyck max_dept=3": "did you mean 'max_depth'?",
        "dyck max_depth=x": "expected a whole number",
        "(ab": "a parenthesis is not closed",
        "a >= = b": "formula='a >= = b'",
        "regular": "alphabet=''",
    }
    for text, reason in refused.items():
        with pytest.raises(ConfigError) as caught:
            typed.tasks_of(text)
        assert reason in str(caught.value), text
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="did you mean 'transformer'"):
        typed.networks_of("trasformer rotary")
    with pytest.raises(ConfigError, match="did you mean 'rotary'"):
        typed.networks_of("transformer rotory")
    with pytest.raises(SpecError, match="name at least one task"):
        made(" , ")
    with pytest.raises(SpecError, match="name at least one network"):
        made("parity", "")


def test_shared_settings_vary_and_a_network_overrides_them() -> None:
    varied: dict[str, list[Any]] = {"hidden_size": [16], "learning_rate": [0.01, 0.02]}
    configs = made("parity", "transformer, lstm width=64", varied)
    settings = {(x.architecture, x.hidden_size, x.learning_rate) for x in configs}
    assert settings == {
        *(("transformer", 16, x) for x in (0.01, 0.02)), *(("lstm", 64, x) for x in (0.01, 0.02))
    }  # fmt: skip


def test_values_and_seeds_are_parsed_from_text() -> None:
    seeds = {"0-9": "0..9", "0..9": "0..9", " 3 ": "0..2", "3..3": "3..3", "1, 5,7": [1, 5, 7]}
    assert {text: typed.seeds_of(text) for text in seeds} == seeds
    assert typed.values_of("hidden_size", "2, 4,8") == [2, 4, 8]
    assert typed.values_of("language_seed", "9, 2..4") == [9, 2, 3, 4]
    assert typed.values_of("train_lengths", "[[8, 0.2], [40, 1.0]]") == ["[[8, 0.2], [40, 1.0]]"]
    with pytest.raises(SpecError, match="at most 100,000"):
        typed.values_of("language_seed", "0..1000000")
    with pytest.raises(ConfigError, match="hidden_size=x: expected"):
        typed.values_of("hidden_size", "2, x")


def test_file_is_typed_by_its_name(tmp_path: Any) -> None:
    path = tmp_path / "own strings.csv"
    path.write_text("tokens,label\nab,1\nba,0\naab,1\n")
    digest = remember(read_dataset(path))
    for text in ('"own strings.csv"', "own strings.csv"):
        (entry,) = typed.tasks_of(text, {"own strings.csv": digest})
        assert entry.fields == {"task": "file", "dataset": digest}
