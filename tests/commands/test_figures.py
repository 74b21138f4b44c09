"""`seqcls figures` as a user runs it."""

import shutil
from pathlib import Path

import pytest

from seqcls.errors import SeqclsError
from sweeps import api
from tests.commands import printed
from tests.conftest import ROOT

RUN = ["figures", "all_initializations/2", "--db", str(ROOT / "runs.db")]


def test_every_figure_is_written_as_png_and_svg(tmp_path: Path) -> None:
    out = tmp_path / "new" / "figures"
    strings = ["baac", "ab{100}c{55}"]
    output = printed(*RUN, *strings, "--out", str(out))
    names = sorted(path.name for path in out.iterdir())
    assert f"{len(names)} files" in output
    assert {name.rpartition(".")[0] for name in names if name.endswith("png")} == {
        name.rpartition(".")[0] for name in names if name.endswith("svg")
    }
    assert {int(name[:2]) for name in names} == {*range(1, 18)} - {4, 11}, "it has no norms"
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    weights = (out / "08_attention_weights_of_cls_head_0.svg").read_text()
    assert "ab{100}c{55}" in weights
    assert "b x 100" in weights


@pytest.mark.usefixtures("undrawn")
def test_figures_of_a_model_that_sees_order_are_drawn_token_by_token(
    kinds: Path, tmp_path: Path
) -> None:
    db, written = str(shutil.copy(kinds / "kinds.db", tmp_path)), {}
    store = api.open_store(db)
    run_of = {x: str(api.runs(store, x)["id"].iloc[0]) for x in ("of_order", "file_of_brackets")}
    # Of brackets alone no name of a file can be made.
    for kind, strings in (("of_order", ["0101", "01"]), ("file_of_brackets", ["(]((", "(]"])):
        out = tmp_path / kind
        printed("figures", run_of[kind], *strings, "--db", db, "--out", str(out))
        written[kind] = {path.stem for path in out.glob("*.svg")}
        assert {path.stem for path in out.glob("*.png")} == written[kind]
        assert len(api.figures(store, run_of[kind], strings)) == len(written[kind])
    names = written["of_order"]
    assert {"logit_of_every_prefix_0101", "logit_of_every_prefix_01"} <= names
    assert {"units_layer_0_forget_gate_0101", "path_of_the_state_layer_0_01"} <= names
    assert any(x.startswith("what_each_part_adds") for x in written["file_of_brackets"])
    run = run_of["of_order"]
    with pytest.raises(SeqclsError, match="100 tokens: this model's figures have a column"):
        api.figures(store, run, ["0{100}"])
