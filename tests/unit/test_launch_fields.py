"""Which settings the launch panel offers, and how what is typed is understood."""

from typing import Any

from dashboard.launch.fields import (
    default_value,
    offered_fields,
    options,
    parse_typed,
    usual,
)
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


OF_BRACKETS = {"bracket_types", "max_depth", "negatives"}
WRITING = {"loss_on", "decoding", "beam_width", "tied_embeddings"}
OF_ATTENTION = {"positions", "num_attention_heads", "attention_mask", "layer_norm", "final_norm"}
OFFERED: list[tuple[dict[str, Any], set[str], set[str]]] = [
    ({}, {"num_letters", "required_letters", "train_alpha"}, {"pattern", "formula", "alphabet"}),
    ({}, {"positions", "num_attention_heads", "no_attend_cls", "final_norm"}, {"position_range"}),
    ({}, set(), OF_BRACKETS - {"max_depth"} | {"negative_lengths"}),
    ({"task": "dyck"}, OF_BRACKETS | {"train_min_length"}, {"num_letters", "sequence_length"}),
    ({"task": "dyck"}, {"test_negatives"}, {"required_letters", "train_alpha"}),
    ({"task": ["dyck", "parity"]}, set(), {"bracket_types"}),
    ({"task": "subregular"}, {"language_class", "width", "tier_size", "language_seed"}, set()),
    ({"positions": "rotary"}, {"position_range"}, {"position_draw"}),
    ({"positions": "relative"}, set(), {"position_range"}),
    ({"positions": "learned"}, {"position_draw"}, set()),
    ({"architecture": "lstm"}, {"hidden_size", "num_blocks", "readout", "biases"}, OF_ATTENTION),
    ({"task": "copy"}, {"num_tokens", "distinct", "stop_when_right", *WRITING}, OF_BRACKETS),
    ({"task": "copy"}, set(), {"digit_order", "pattern", "required_letters", "check_every"}),
    ({"task": "copy", "architecture": "recurrent_attention"}, {"attention"}, set()),
    ({"task": "addition"}, {"base", "digit_order"}, set()),
    ({"task": "rewrite"}, {"pattern", "replacement", "alphabet"}, set()),
    *(
        ({"task": task, "stop_when_right": ends}, {"check_every"} - no, no)
        for task in ("parity", "copy")
        for ends, no in (
            (True, set[str]()),
            (False, {"check_every"}),
            ([False, True], {"check_every"}),
        )
    ),
]
"""What is chosen, what is offered then, and what is not."""


def test_only_settings_that_the_task_and_the_network_read_are_offered() -> None:
    for fields, some, others in OFFERED:
        assert some <= chosen(**fields), fields
        assert not others & chosen(**fields), fields
    for task in TASKS.usable():
        if kind_name(TASKS[task]) == "membership":
            assert not WRITING & chosen(task=task), task
            assert "stop_when_right" in chosen(task=task), task
    values = lambda name: [default_value(name, "parity") if name != "task" else "parity"]  # noqa: E731
    assert options("train_sampler", values) == ["balanced_strings", "fixed_length"]


def test_every_value_that_is_offered_can_be_trained_with() -> None:
    language = {"task": "subregular", "language_class": "TLTT", "alphabet_size": 16}
    for field in ("width", "threshold", "tier_size", "language_seed"):
        for value in options(field, lambda name: [default_value(name, "subregular")]):
            configuration({**language, field: value})
    for field in ("train_size", "validation_size", "test_size", "train_batch_size"):
        offered = options(field, lambda name: [default_value(name, "parity")])
        assert len(offered) > 3
        for value in offered:
            resolve(configuration({"task": "parity", "train_batch_size": 128, field: value}))


def test_values_and_seeds_are_understood_as_people_write_them() -> None:
    typed = {"0-9": "0..9", "0..9": "0..9", " 3 ": "0..2", "3..3": "3..3", "1, 5,7": [1, 5, 7]}
    assert {text: seeds_of(text) for text in typed} == typed
    assert parse_typed("hidden_size", "2, 4,8") == ([2, 4, 8], None)
    assert parse_typed("base", "10, 2") == ([10, 2], None)
    assert parse_typed("language_seed", "9, 2..4") == ([9, 2, 3, 4], None)
    assert "at most 100,000" in (parse_typed("language_seed", "0..1000000")[1] or "")
    assert (parse_typed("hidden_size", "2, x")[1] or "").startswith("hidden_size='x': expected")


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


def test_what_has_its_negatives_already_keeps_them() -> None:
    of_dyck = chosen(task="dyck")
    assert Start({}).recommend(of_dyck, "dyck", has_near=True) == {
        "negative_lengths": ["uniform"],
        "negatives": ["near"],
    }
    assert Start({"fixed": {"task": "dyck"}}).recommend(of_dyck, "dyck", has_near=True) == {}
    assert Start({}).recommend(chosen(), "contains_all", has_near=True) == {}


FAMILIES = {"copy": "a{n}", "write_flip_flop": "<w0>{n}r", "associative_recall": "<b1>{n}b"}


def test_the_shortest_strings_and_a_family_of_a_task_are_shown() -> None:
    for name in sorted(set(LANGUAGES) - {"regular", "counting"}):
        assert all(shortest_strings(resolve(configuration({"task": name})).task)), name
    assert shortest_strings(resolve(configuration({"task": "dyck"})).task)[0][:2] == ("", "()")
    every = tuple("a" * length for length in range(6))
    assert shortest_strings(Regular("a", "a*")) == (every, ())
    assert shortest_strings(Regular("a", "a{100}"))[0] == ("a" * 100,)
    shown = {name: family_example(resolve(configuration({"task": name})).task) for name in FAMILIES}
    assert shown == FAMILIES


def test_a_transduction_that_starts_from_a_language_begins_with_a_model_that_can_write() -> None:
    report, copying = Start({}), Start({"fixed": {"task": "copy"}})
    transformer = report.recommend(chosen(task="copy"), "copy")
    assert transformer["positions"] == ["alibi"]
    assert transformer["test_max_length"] == [40]
    recurrent = report.recommend(chosen(task="copy", architecture="lstm"), "copy")
    assert "positions" not in recurrent
    assert recurrent["hidden_size"] == transformer["hidden_size"]
    assert copying.recommend(chosen(task="reverse"), "reverse") == {}
    for architecture, own in (("transformer", transformer), ("lstm", recurrent)):
        values = {name: x for name, (x,) in own.items()}
        configuration({"task": "copy", "architecture": architecture, **values})
    assert "positions" in usual("Network", "copy")
    assert "positions" not in usual("Network", "parity")
