"""The campaign tries what was not tried for longest, tells failures apart, and goes on."""

import json
import re
from pathlib import Path

import pytest

from tests.chaos import __main__ as campaign
from tests.conftest import ROOT

SHORT_ALONE = {"test_campaign.py"}
"""What is no part of a campaign."""

CASES = """
import os
import pytest

@pytest.mark.parametrize("seed", range(3))
def test_some(seed):
    assert seed != 1, "the second fails"

def test_ends_its_process():
    os._exit(9)
"""


def test_every_test_of_chaos_belongs_to_a_part_and_every_part_is_there() -> None:
    files = {campaign.file_of(path) for paths in campaign.PARTS.values() for path in paths}
    assert all((ROOT / file).exists() for file in files)
    own = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert own - SHORT_ALONE == {Path(x).name for x in files if x.startswith("tests/chaos/")}


def test_a_part_goes_on_after_failures_and_what_was_not_tried_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"some": CASES, "none": ""}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    monkeypatch.setattr(campaign, "PARTS", {"some": ("test_some.py",), "none": ("test_none.py",)})
    # So that each case has a process of its own.
    monkeypatch.setattr(campaign, "TOGETHER_SECONDS", 0.0)
    state = tmp_path / "state.json"
    assert campaign.main(["some", "--minutes", "1"], state) == 1
    said = capsys.readouterr().out
    row = r"\| some \| 4 of 4 \| [\d.]+ \| 2 \| \d+ s \|  \|"
    assert re.search(row, said)
    assert "the second fails" in said
    assert "its process ended" in said
    repeated = r"SEQCLS_CHAOS=long SEQCLS_CHAOS_SEED=0 .*pytest .*'test_some.py::test_some\[1\]'"
    assert re.search(repeated, said)

    known = json.loads(state.read_text())
    assert {case.partition("::")[2]: failed for case, (_, _, failed) in known.items()} == {
        **{f"test_some[{seed}]": seed == 1 for seed in range(3)},
        "test_ends_its_process": True,
    }
    known.pop("test_some.py::test_some[2]")
    state.write_text(json.dumps(known))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    # Time is over after one case, which was never tried, and passes.
    monkeypatch.setattr("time.monotonic", iter(map(float, range(0, 9_999, 60))).__next__)
    assert campaign.main(["some", "--minutes", "2"], state) == 0
    assert "| some | 1 of 4 |" in capsys.readouterr().out
    monkeypatch.undo()


def test_a_part_that_tries_nothing_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "PARTS", {"none": ("test_none.py",)})
    monkeypatch.setattr(campaign, "collect", lambda *_: {"none": []})
    assert campaign.main([], tmp_path / "state.json") == 1
    assert "| none | 0 of 0 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        campaign.main(["nonsense"])
    assert "no part 'nonsense'" in capsys.readouterr().err
