"""`seqcls figures` as a user runs it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import app
from seqcls.errors import SeqclsError
from tests.conftest import ROOT

RUN = ["figures", "all_initializations/2", "--db", str(ROOT / "runs.db")]


def test_every_figure_is_written_as_png_and_svg(tmp_path: Path) -> None:
    out = tmp_path / "new" / "figures"
    strings = ["baac", "ab{100}c{55}"]
    done = CliRunner().invoke(app, [*RUN, *strings, "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    names = sorted(path.name for path in out.iterdir())
    assert f"{len(names)} files" in done.output
    assert {name.rpartition(".")[0] for name in names if name.endswith("png")} == {
        name.rpartition(".")[0] for name in names if name.endswith("svg")
    }
    assert {int(name[:2]) for name in names} == {*range(1, 18)} - {4, 11}, "it has no norms"
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    weights = (out / "08_attention_weights_of_cls_head_0.svg").read_text()
    assert "ab{100}c{55}" in weights
    assert "b x 100" in weights


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["xyz"], "unknown letter 'x'"), (["ab", "--epoch", "99"], "no weights of epoch 99")],
)
def test_mistakes_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    out = tmp_path / "figures"
    with pytest.raises(SeqclsError, match=says):
        CliRunner().invoke(app, [*RUN, *arguments, "--out", str(out)], catch_exceptions=False)
    assert not out.exists()
