"""A sweep of variants from the launch panel: each has only what it reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import sweep_queries
from tests.app import open_app, rerun, said
from tests.conftest import SHORT
from tests.databases import file_of
from tests.integration.test_sidebar import OWN, panel

THREE = ["transformer, positions rotary", "transformer, positions none", "lstm"]


def launched(
    app: AppTest, monkeypatch: pytest.MonkeyPatch, db: Path, name: str = "my_sweep"
) -> dict[str, Any]:
    """The specification that the button would train."""
    monkeypatch.setattr("sweeps.work.background_worker.start_worker", lambda *_, **__: None)
    app.button("launch_button").click()
    rerun(app)
    found: dict[str, Any] = json.loads(sweep_queries.specifications(open_reader(str(db)))[name])
    return found


def start_from(app: AppTest, label: str) -> None:
    app.selectbox(key="launch_start").set_value(label)
    rerun(app)


def test_three_variants_and_five_seeds_take_one_form(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "variants.db"
    app = panel(open_app(monkeypatch, db), "Your own")
    start_from(app, "The report's model")
    app.text_input(key="launch_seeds").set_value("5")
    app.multiselect(key="launch_variants").set_value(THREE)
    rerun(app)
    assert "15 models" in said(app)
    assert not any("encoder" in x for x in app.multiselect(key="launch_variants").options)
    assert "Seeds 0..4" in said(app)
    assert "Set so that training works: attention_head_size = 2" in plain(app)
    assert "Set so that training works: readout = last" in plain(app)
    spec = launched(app, monkeypatch, db)
    assert spec["model_seeds"] == "0..4"
    rotary, none, lstm = spec["configurations"]
    assert rotary["positions"] == "rotary"
    assert rotary["attention_head_size"] == 2
    assert none == {"architecture": "transformer", "positions": "none"} | {
        x: y for x, y in none.items() if x in ("no_attend_cls", "layer_norm_eps")
    }
    assert lstm == {"architecture": "lstm", "readout": "last"}


def test_every_task_is_trained_with_every_variant_and_theory_has_a_line_of_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "languages.db"
    app = panel(open_app(monkeypatch, db), "Your own")
    app.selectbox(key="launch task").set_value("parity")
    app.multiselect(key="launch_more tasks").set_value(["regular", "dyck"])
    app.multiselect(key="launch_variants").set_value(THREE)
    rerun(app)
    assert "Type the alphabet" not in plain(app)
    assert "Type the pattern of the language." in plain(app)
    app.text_input(key="launch pattern").set_value("(ab)*; (ba)*")
    app.multiselect(key="launch bracket_types").set_value([2])
    rerun(app)
    assert "96 models" in said(app)
    assert "Doesn't use" not in plain(app)
    assert "Kept, but" not in plain(app)
    lines = [x.value.replace("\\", "") for x in app.caption]
    assert any(x.startswith("lstm: can: it is regular") for x in lines)
    assert any(x.startswith("transformer, positions none: cannot: ") for x in lines)
    spec = parse_spec(launched(app, monkeypatch, db))
    made = {
        (x.task, x.pattern, x.bracket_types, x.architecture, x.positions) for x in spec.configs()
    }
    assert len(made) == 12
    assert {x[:3] for x in made} == {
        ("parity", "", 1), ("regular", "(ab)*", 1), ("regular", "(ba)*", 1), ("dyck", "", 2)
    }  # fmt: skip
    again = panel(open_app(monkeypatch, db), "Your own")
    assert again.text_input(key="launch_name").value == "my_sweep_2", "it would replace the first"
    start_from(again, "Sweep my_sweep")
    assert "96 models" in said(again)
    more = parse_spec(launched(again, monkeypatch, db, "my_sweep_2"))
    assert {x.key for x in more.configs()} == {x.key for x in spec.configs()}


def test_what_a_base_makes_of_other_fields_follows_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "following.db"
    app = panel(open_app(monkeypatch, db), "Your own")
    app.multiselect(key="launch hidden_size").set_value([16, 64])
    app.multiselect(key="launch train_max_length").set_value([20])
    app.multiselect(key="launch architecture").set_value(["transformer", "lstm"])
    rerun(app)
    spec = parse_spec(launched(app, monkeypatch, db))
    own = [x for x in spec.configs() if x.architecture == "transformer"]
    assert [(x.feed_forward_size, x.attention_head_size) for x in own] == [(64, 4), (256, 16)]
    assert {x.validation_max_length for x in spec.configs()} == {20}
    readouts = {x.architecture: x.readout for x in spec.configs()}
    assert readouts == {"transformer": "first", "lstm": "last"}


def test_what_nobody_set_is_not_said_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    app.selectbox(key="launch task").set_value("regular")
    rerun(app)
    app.selectbox(key="launch task").set_value("copy")
    app.multiselect(key="launch_variants").set_value(["lstm"])
    rerun(app)
    assert "Kept, but" not in plain(app)
    assert "Doesn't use" not in plain(app)
    assert "without" not in next(x for x in plain(app).split("\n") if x.startswith("Changes from"))


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("head size", "attention_head_size"),
        ("layers", "num_blocks"),
        ("learning rate", "learning_rate"),
        ("epochs", "max_num_epochs"),
        ("batch size", "train_batch_size"),
    ],
)
def test_a_setting_is_found_by_the_words_that_people_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, field: str
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    found = [x for x in app.selectbox(key="launch_search").options if words in x]
    assert any(x.startswith(field) for x in found)


def test_a_variant_has_settings_of_its_own_and_shares_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "variants.db"
    app = panel(open_app(monkeypatch, db), "Your own")
    start_from(app, "The report's model")
    app.multiselect(key="launch_variants").set_value(THREE[1:])
    app.multiselect(key="launch hidden_size").set_value([4])
    app.multiselect(key="launch num_attention_heads").set_value([4])
    rerun(app)
    assert "Doesn't use num_attention_heads = 4" in plain(app)
    app.button("launch_add_variant").click()
    app.multiselect(key="launch variant lstm ").set_value(["biases"])
    rerun(app)
    app.multiselect(key="launch variant lstm biases").set_value([True, False])
    app.multiselect(key="launch variant Variant 1 ").set_value(["num_blocks"])
    rerun(app)
    app.multiselect(key="launch variant Variant 1 num_blocks").set_value([2])
    rerun(app)
    assert "32 models" in said(app)
    spec = launched(app, monkeypatch, db)
    assert spec["fixed"]["hidden_size"] == 4
    entries = spec["configurations"]
    assert [x.get("num_attention_heads") for x in entries] == [4, None, None, 4]
    assert [x.get("biases") for x in entries] == [None, True, False, None]
    assert [x.get("num_blocks") for x in entries] == [None, None, None, 2]


def test_an_architecture_sets_a_readout_with_which_it_can_be_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    app.multiselect(key="launch num_attention_heads").set_value([4])
    rerun(app)
    app.multiselect(key="launch architecture").set_value(["lstm"])
    rerun(app)
    assert "Set so that training works: readout = last" in plain(app)
    assert "Kept, but not used with these settings: num_attention_heads = 4" in plain(app)
    app.multiselect(key="launch architecture").set_value(["transformer"])
    rerun(app)
    assert app.multiselect(key="launch num_attention_heads").value == [4], "it was kept"


def test_starting_from_a_sweep_takes_its_seeds_and_a_free_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "started.db"))
    writer.submit(store, parse_spec(OWN))
    app = panel(open_app(monkeypatch, file_of(store)), "Your own")
    start_from(app, "Sweep mine")
    assert app.text_input(key="launch_seeds").value == "0, 1, 2"
    assert app.text_input(key="launch_name").value == "mine_2"


@pytest.mark.parametrize("content", [None, b"", b"\x00garbage" * 1000])
def test_the_page_opens_on_whatever_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    db = tmp_path / "some.db"
    if content is not None:
        db.write_bytes(content)
    app = open_app(monkeypatch, db, "launch")
    assert "8 models to train" in said(app) or app.error


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


def test_a_variants_own_value_is_kept_while_it_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "variants.db"
    app = panel(open_app(monkeypatch, db), "Your own")
    app.button("launch_add_variant").click()
    rerun(app)
    own = "launch variant Variant 1 "
    app.multiselect(key=own).set_value(["num_attention_heads", "architecture"])
    rerun(app)
    app.multiselect(key=f"{own}num_attention_heads").set_value([4])
    app.multiselect(key=f"{own}architecture").set_value(["lstm"])
    rerun(app)
    assert app.multiselect(key=own).value == ["architecture"]
    assert "Kept, but not used by this variant: num_attention_heads = 4." in plain(app)
    app.multiselect(key=f"{own}architecture").set_value(["transformer"])
    rerun(app)
    assert set(app.multiselect(key=own).value) == {"num_attention_heads", "architecture"}
    assert app.multiselect(key=f"{own}num_attention_heads").value == [4]
    assert "Kept, but" not in plain(app)


def test_a_stored_sweeps_configurations_are_variants_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "stored.db"))
    several = [
        {"architecture": "transformer", "positions": "rotary", "attention_head_size": 2},
        {"architecture": "lstm", "readout": "last"},
        {"architecture": "lstm", "readout": "last", "hidden_size": 3},
    ]
    stored = {"name": "mine", "model_seeds": [0, 1, 2]}
    fixed = SHORT
    writer.submit(store, parse_spec({**stored, "fixed": fixed, "configurations": several}))
    app = panel(open_app(monkeypatch, file_of(store)), "Your own")
    start_from(app, "Sweep mine")
    assert app.multiselect(key="launch_variants").value == [
        "transformer, positions rotary",
        "lstm",
        "Variant 3",
    ]
    assert app.multiselect(key="launch variant Variant 3 hidden_size").value == ["3"]
    spec = launched(app, monkeypatch, file_of(store), "mine_2")
    assert {config.key for config in parse_spec(spec).configs()} == {
        config.key
        for config in parse_spec({**stored, "fixed": fixed, "configurations": several}).configs()
    }


def test_a_sweep_whose_configurations_have_seeds_of_their_own_starts_with_all_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "variants.db"))
    several = [{"hidden_size": 2}, {"hidden_size": 4, "model_seeds": [1, 5]}]
    stored = {"name": "mine", "model_seeds": "0..1", "fixed": SHORT, "configurations": several}
    writer.submit(store, parse_spec(stored))
    app = panel(open_app(monkeypatch, file_of(store)), "Your own")
    start_from(app, "Sweep mine")
    assert app.text_input(key="launch_seeds").value == "0, 1, 5"
    spec = parse_spec(launched(app, monkeypatch, file_of(store), "mine_2"))
    assert [(config.hidden_size, [*seeds]) for config, seeds in spec.members()] == [
        (2, [0, 1, 5]),
        (4, [0, 1, 5]),
    ]
