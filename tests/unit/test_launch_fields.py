"""Which settings the launch panel offers, and how what is typed is understood."""

from typing import Any

from dashboard.launch.fields import (
    default_value,
    offered_fields,
    options,
    parse_typed,
    usual,
)
from dashboard.launch.language import has_near_negatives
from dashboard.launch.starting_point import Start, seeds_of
from dashboard.words.languages import family_example, shortest_strings
from seqcls.config import RunConfig
from seqcls.kinds import kind_name
from seqcls.problem import configuration, resolve
from seqcls.tasks import TASKS
from seqcls.tasks.regular import Regular
from sweeps.grid.spec import parse_spec
from tests.tasks import LANGUAGES


def chosen(**fields: Any) -> set[str]:
    """The fields that are offered where these are chosen."""
    values = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    task = values.get("task", [None])[0] or "contains_all"
    groups = offered_fields(lambda name: values.get(name, [default_value(name, task)]))
    return {name for names in groups.values() for name in names}


def test_only_settings_that_the_task_reads_are_offered() -> None:
    assert {"num_letters", "required_letters", "train_alpha"} <= chosen()
    assert not {"bracket_types", "pattern", "formula", "alphabet", "negatives"} & chosen()
    brackets = chosen(task="dyck")
    assert {"bracket_types", "max_depth", "negatives", "train_min_length"} <= brackets
    assert not {"num_letters", "required_letters", "train_alpha", "sequence_length"} & brackets
    assert "bracket_types" not in chosen(task=["dyck", "parity"])


def test_what_is_offered_for_a_random_language_can_be_had() -> None:
    assert {"language_class", "width", "tier_size", "language_seed"} <= chosen(task="subregular")
    fields = {"task": "subregular", "language_class": "TLTT", "alphabet_size": 16}
    for field in ("width", "threshold", "tier_size", "language_seed"):
        for value in options(field, lambda name: [default_value(name, "subregular")]):
            configuration({**fields, field: value})


def test_every_number_of_strings_that_is_offered_can_be_trained_with() -> None:
    for field in ("train_size", "validation_size", "test_size", "train_batch_size"):
        offered = options(field, lambda name: [default_value(name, "parity")])
        assert len(offered) > 3
        for value in offered:
            resolve(configuration({"task": "parity", "train_batch_size": 128, field: value}))


def test_only_settings_that_the_network_reads_are_offered() -> None:
    assert {"positions", "num_attention_heads", "no_attend_cls"} <= chosen()
    assert "position_range" not in chosen()
    assert "position_range" in chosen(positions="rotary")
    assert "position_range" not in chosen(positions="relative")
    assert "position_draw" in chosen(positions="learned")
    assert "position_draw" not in chosen(positions="rotary")
    recurrent = chosen(architecture="lstm")
    assert {"hidden_size", "num_blocks", "readout", "biases"} <= recurrent
    assert not {"positions", "num_attention_heads", "attention_mask", "layer_norm"} & recurrent
    assert "final_norm" in chosen()
    assert "final_norm" not in recurrent


def test_what_only_transductions_read_is_not_offered_for_languages() -> None:
    of_transductions = {"loss_on", "decoding", "beam_width", "tied_embeddings"}
    for task in TASKS.usable():
        if kind_name(TASKS[task]) == "membership":
            assert not of_transductions & chosen(task=task)


def test_checks_within_epochs_are_offered_where_training_ends_when_all_is_right() -> None:
    for task in ("parity", "copy"):
        assert "stop_when_right" in chosen(task=task)
        assert "check_every" in chosen(task=task, stop_when_right=True)
        for values in (False, [False, True]):
            assert "check_every" not in chosen(task=task, stop_when_right=values)


def test_what_a_transduction_reads_is_offered() -> None:
    copying = chosen(task="copy")
    assert {
        "num_tokens",
        "distinct",
        "loss_on",
        "decoding",
        "beam_width",
        "stop_when_right",
    } <= copying
    assert not {"digit_order", "pattern", "negatives", "required_letters"} & copying
    assert {"base", "digit_order"} <= chosen(task="addition")
    assert {"pattern", "replacement", "alphabet"} <= chosen(task="rewrite")
    assert "attention" in chosen(task="copy", architecture="recurrent_attention")


def test_what_is_offered_is_never_refused_as_unread() -> None:
    other = {"bracket_types": 2, "max_depth": 3, "negatives": "edits", "train_set": "fixed"}
    for task in sorted(set(LANGUAGES) - {"regular", "counting"}):
        for name in chosen(task=task) & set(other):
            assert configuration({"task": task, name: other[name]})


def test_only_samplers_that_can_serve_the_task_are_offered() -> None:
    def values(name: str) -> list[Any]:
        return [{"task": "parity"}.get(name, default_value(name, "parity"))]

    assert options("train_sampler", values) == ["balanced_strings", "fixed_length"]


def test_seeds_are_understood_as_people_write_them() -> None:
    typed = {"0-9": "0..9", "0..9": "0..9", " 3 ": "0..2", "3..3": "3..3", "1, 5,7": [1, 5, 7]}
    assert {text: seeds_of(text) for text in typed} == typed


def test_several_values_are_typed_at_once() -> None:
    assert parse_typed("hidden_size", "2, 4,8") == ([2, 4, 8], None)
    assert parse_typed("base", "10, 2") == ([10, 2], None)
    assert parse_typed("language_seed", "9, 2..4") == ([9, 2, 3, 4], None)
    _, reason = parse_typed("language_seed", "0..1000000")
    assert reason
    assert "expected at most 100,000; take fewer" in reason
    _, reason = parse_typed("hidden_size", "2, x")
    assert reason
    assert reason.startswith("hidden_size='x': expected")


def test_a_sweep_starts_from_another_and_says_what_is_changed() -> None:
    begin = Start(
        {"fixed": {"layer_norm_eps": 0.0, "no_attend_cls": True}, "axes": {"hidden_size": [2, 4]}}
    )
    read = set(RunConfig.model_fields)
    made: dict[str, list[Any]] = {"hidden_size": [8], "dropout_rate": [0.0, 0.1]}
    spec = parse_spec(begin.with_changes(made, read, name="s", model_seeds="0..1"))
    assert [config.changed for config in spec.configs()] == [
        {"hidden_size": 8, "layer_norm_eps": 0.0, "no_attend_cls": True} | other
        for other in ({}, {"dropout_rate": 0.1})
    ]
    assert begin.changes(made, read - {"no_attend_cls"}) == [
        "hidden_size 2, 4 → 8",
        "dropout_rate 0 → 0, 0.1",
        "without no_attend_cls",
    ]


def test_new_sweeps_draw_negatives_of_uniform_lengths_and_old_ones_as_they_were() -> None:
    report = Start({"fixed": {"hidden_size": 2}})
    of_parity = chosen(task="parity")
    assert report.recommend(of_parity, "parity") == {"negative_lengths": ["uniform"]}
    assert report.recommend(chosen(), "contains_all") == {}
    tables: list[dict[str, Any]] = [
        {"fixed": {"task": "parity"}},
        {"axes": {"task": ["parity", "first"]}},
        {"configurations": [{"task": "parity"}]},
        {"fixed": {"test_sampler": "balanced_strings"}},
        {"fixed": {"task": "parity", "negative_lengths": "redrawn"}},
    ]
    for table in tables:
        assert Start(table).recommend(of_parity, "parity") == {}, table


NEAR: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("modular_arithmetic", {}, True),
    ("dyck", {"bracket_types": 2, "train_max_length": 10_000}, True),
    ("regular", {"alphabet": "ab", "pattern": "(ab|ba)*"}, True),
    ("contains_all", {}, True),
    ("regular", {"alphabet": "ab", "pattern": "(ab)*"}, False),
    ("repeat_01", {}, False),
    ("regular", {"alphabet": "ab", "pattern": "(ab"}, False),
    ("counting", {}, False),
    ("copy", {}, False),
    ("file", {}, False),
    ("of_no_package", {}, False),
)
"""Whether the form knows of near negatives of a task, where these fields are chosen."""


def test_new_sweeps_begin_with_near_negatives_where_the_language_has_any() -> None:
    for task, given, has_near in NEAR:

        def chosen_value(name: str, task: str = task, given: dict[str, Any] = given) -> list[Any]:
            return [given.get(name, default_value(name, task))]

        assert has_near_negatives(task, chosen_value) is has_near, (task, given)


def test_what_has_its_negatives_already_keeps_them() -> None:
    of_dyck = chosen(task="dyck")
    assert {"negatives", "test_negatives"} <= of_dyck
    assert Start({}).recommend(of_dyck, "dyck", has_near=True) == {
        "negative_lengths": ["uniform"],
        "negatives": ["near"],
    }
    assert Start({"fixed": {"task": "dyck"}}).recommend(of_dyck, "dyck", has_near=True) == {}
    assert Start({}).recommend(chosen(), "contains_all", has_near=True) == {}


def test_the_shortest_strings_of_a_language_are_shown_with_the_right_label() -> None:
    for name in sorted(set(LANGUAGES) - {"regular", "counting"}):
        task = resolve(configuration({"task": name})).task
        positive, negative = shortest_strings(task)
        assert positive, name
        assert negative, name
    assert shortest_strings(resolve(configuration({"task": "dyck"})).task)[0][:2] == ("", "()")


FAMILIES = {"copy": "a{n}", "write_flip_flop": "<w0>{n}r", "associative_recall": "<b1>{n}b"}


def test_a_family_of_instructions_or_of_pairs_is_of_inputs() -> None:
    shown = {name: family_example(resolve(configuration({"task": name})).task) for name in FAMILIES}
    assert shown == FAMILIES


def test_one_letters_strings_are_looked_at_up_to_a_length() -> None:
    positive, negative = shortest_strings(Regular("a", "a*"))
    assert positive == tuple("a" * length for length in range(6))
    assert negative == ()
    assert shortest_strings(Regular("a", "a{100}"))[0] == ("a" * 100,)


def test_a_transduction_that_starts_from_a_language_begins_with_a_model_that_can_write() -> None:
    report, copying = Start({}), Start({"fixed": {"task": "copy"}})
    transformer = report.recommend(chosen(task="copy"), "copy")
    assert transformer["positions"] == ["alibi"]
    assert transformer["test_max_length"] == [40]
    recurrent = report.recommend(chosen(task="copy", architecture="lstm"), "copy")
    assert "positions" not in recurrent
    assert recurrent["hidden_size"] == transformer["hidden_size"]
    assert copying.recommend(chosen(task="reverse"), "reverse") == {}
    configuration({"task": "copy", **{name: x for name, (x,) in transformer.items()}})
    configuration(
        {"task": "copy", "architecture": "lstm", **{name: x for name, (x,) in recurrent.items()}}
    )


def test_positions_are_offered_at_once_where_models_write() -> None:
    assert "positions" in usual("Network", "copy")
    assert "positions" not in usual("Network", "parity")
