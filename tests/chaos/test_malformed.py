"""Nonsense of every kind gets a one-line error: no traceback, and nothing is written."""

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from seqcls.config import RunConfig, default_fields
from seqcls.errors import SeqclsError
from sweeps.cli.app import app
from sweeps.grid.spec import read_spec
from tests.conftest import LONG, ROOT

# TOML knows no surrogates, and neither do command lines.
texts = st.text(st.characters(codec="utf-8"), max_size=30)
names = st.one_of(st.sampled_from(sorted(default_fields())), texts)
values = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    texts,
    st.sampled_from(["0..7", "7..0", "0..99999999999", "every_epoch", "float64", "nn"]),
    st.lists(st.one_of(st.integers(-3, 3), texts), max_size=4),
    st.dictionaries(texts, st.integers(), max_size=2),
)
specs = st.dictionaries(
    st.one_of(
        st.sampled_from(
            [
                *("name", "description", "model_seeds", "checkpoints", "verdict"),
                *("fixed", "axes", "configurations"),
            ]
        ),
        texts,
    ),
    st.one_of(values, st.dictionaries(names, values, max_size=3)),
    max_size=6,
)


def answered(arguments: list[str]) -> tuple[int, str]:
    """The exit status of the command, and the error as the user would read it."""
    result = CliRunner().invoke(app, arguments)
    error = result.exception
    if error is None or isinstance(error, SystemExit):
        return result.exit_code, result.stderr
    assert isinstance(error, SeqclsError | OSError | UnicodeError), repr(error)
    assert str(error).strip()
    return 2, str(error)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    return tmp_path


SHARED = settings(
    max_examples=200 if LONG else 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@SHARED
@given(data=specs)
def test_a_malformed_specification_is_refused_and_writes_nothing(
    folder: Path, data: dict[str, Any]
) -> None:
    path = folder / "spec.toml"
    text = tomli_w.dumps(data)
    path.write_text(text, encoding="utf-8")
    status, message = answered(["submit", str(path), "--db", str(folder / "new.db")])
    if status == 0:
        # Not malformed after all.
        assert tomllib.loads(text)["model_seeds"]
        (folder / "new.db").unlink()
        return
    assert message
    assert not (folder / "new.db").exists()


@SHARED
@given(content=st.binary(max_size=200))
def test_a_specification_of_random_bytes_is_refused(folder: Path, content: bytes) -> None:
    path = folder / "spec.toml"
    path.write_bytes(content)
    for command in ("submit", "estimate", "engines"):
        database = [] if command == "engines" else ["--db", str(folder / "new.db")]
        status, _ = answered([command, str(path), *database])
        assert status != 0
    assert not (folder / "new.db").exists()


@SHARED
@given(
    string=texts,
    command=st.sampled_from(["predict walkthrough/5 --", "errors --", "runs --where"]),
)
def test_a_malformed_string_is_answered_or_refused_and_changes_nothing(
    folder: Path, string: str, command: str
) -> None:
    before = (folder / "runs.db").read_bytes()
    name, *rest = command.split()
    status, message = answered([name, "--db", str(folder / "runs.db"), *rest, string])
    assert status == 0 or message
    assert (folder / "runs.db").read_bytes() == before


@SHARED
@given(path=texts.filter(bool), command=st.sampled_from(["runs", "status", "verify", "work"]))
def test_a_malformed_path_is_refused_and_creates_nothing(
    folder: Path, path: str, command: str
) -> None:
    # In a folder that is not there, so that no odd name can mean a real file.
    status, message = answered([command, "--db", str(folder / "nowhere" / path)])
    assert status != 0
    assert message
    assert not (folder / "nowhere").exists()


@SHARED
@given(
    url=st.one_of(
        texts.map("postgresql://{}".format),
        texts.map("sqlite://{}".format),
        st.tuples(texts, texts).map("://".join),
        texts.map("postgresql://127.0.0.1:1/{}?connect_timeout=1".format),
    )
)
def test_a_malformed_url_is_refused_and_creates_nothing(folder: Path, url: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.MonkeyPatch.context() as patched:
        # No server that is not there is waited for longer.
        patched.setenv("PGCONNECT_TIMEOUT", "1")
        status, message = answered(["runs", f"--db={url}"])
    assert status != 0
    assert message
    assert sorted(folder.iterdir()) == before


def test_every_field_refuses_values_of_wrong_types(folder: Path) -> None:
    path = folder / "spec.toml"
    for name in RunConfig.model_fields:
        for value in ("nan", "inf", '"\\u0000"', "-1e300", "[]", "{}", "1979-05-27"):
            if value == "[]" and name in ("train_lengths", "freeze"):
                continue  # No stages and no parts.
            path.write_text(f'name = "x"\nmodel_seeds = [0]\n[fixed]\n{name} = {value}\n')
            with pytest.raises(SeqclsError, match=r"\S"):
                read_spec(path)
