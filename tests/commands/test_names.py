"""Names of commands, present and former; types that `import` detects; names of databases."""

import itertools
import json
import re
from pathlib import Path

import pytest
from sqlalchemy import make_url

from seqcls.errors import StoreError
from sweeps.cli.app import OLD_WORDS, in_new_words
from sweeps.store.opening import open_reader
from tests.commands import refused, run_main
from tests.databases import save_parity

PANELS = {
    "Ask": "sweep try draw shortcuts estimate theory data",
    "Train": "work status stop resume more delete",
    "Results": "runs errors compare causes remedies report",
    "One model": "model",
    "Files": "import export give db",
    "Watch": "dashboard mcp",
}
MODEL = (
    "predict explain minimal family rules states patch ablate automaton verdict prove check "
    "figures sensitive"
)


def panels_of(*arguments: str) -> dict[str, str]:
    """The names that help shows, by panel."""
    found: dict[str, str] = {}
    for line in run_main(*arguments, COLUMNS="80").stdout.splitlines():
        if title := re.match(r"╭─ (.+?) ─", line):
            found[panel := title[1]] = ""
        elif name := re.match(r"│ ([a-z]+) ", line):
            found[panel] = f"{found[panel]} {name[1]}".strip()
    return {title: names for title, names in found.items() if names}


def test_help_and_seqcls_alone_show_commands_by_workflow() -> None:
    assert panels_of("--help") == panels_of() == PANELS
    assert "Example: seqcls sweep report" in run_main().stdout
    assert list(panels_of("model", "--help").values()) == [MODEL]
    (database,) = panels_of("db", "--help").values()
    assert database.startswith("pack merge verify cache")


def test_old_names_of_commands_still_work_and_are_hidden() -> None:
    shown = {*" ".join([*PANELS.values()]).split()}
    for old, new in OLD_WORDS.items():
        command, *option = old.split()
        assert command not in shown or option
        help_of_new = run_main(*in_new_words([command]), "--help").stdout
        words = [word for word in new.split() if word.startswith("--")]
        assert "Usage:" in help_of_new, old
        for word in words:
            assert f" {word} " in help_of_new, old
        if command != "site":
            assert run_main(command, "--help").stdout == help_of_new
        if option:
            assert in_new_words([command, "a", f"{option[0]}=b"])[-1] == f"{words[-1]}=b"
    for typed in ("public --sweep a", "--sweep a public", "--sweep=a --failing public"):
        others = [word for word in typed.split() if word != "public"]
        assert in_new_words(["site", *typed.split()]) == ["report", "--site", "public", *others]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with strings, predictions for them, and weights."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQCLS_DB", "own.db")
    strings = ["".join(x) for n in range(1, 7) for x in itertools.product("01", repeat=n)]
    rows = [f"{text},{text.count('1') % 2}" for text in strings]
    Path("words.csv").write_text("tokens,label\n" + "\n".join(rows))
    Path("said.csv").write_text(
        "model,seed,tokens,prediction\n" + "\n".join(f"my RNN,0,{row}" for row in rows)
    )
    save_parity(tmp_path / "hand.safetensors")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_import_detects_the_type_of_a_file_and_models_keep_their_names() -> None:
    assert json.loads(run_main("import", "words.csv", "--json").stdout)["rows"] == 126
    tested = ("--dataset", "words.csv")
    assert "1 run imported" in run_main("import", "said.csv", "--sweep", "lab", *tested).stdout
    assert "loaded into own.db" in run_main("import", "hand.safetensors", *tested).stdout
    again = ("import", "said.csv", "--sweep", "lab", *tested)
    assert "--replace, or another name: --name NAME" in refused(*again)
    assert run_main(*again, "--name", "another").returncode == 0
    shown = run_main("runs", "--columns", "configuration").stdout
    for name in ("my RNN", "another", "hand"):
        assert re.search(rf"^ *{name} *$", shown, re.MULTILINE), shown
    assert "expected either --dataset" in refused("import", "said.csv", "--sweep", "lab")


@pytest.mark.usefixtures("folder")
def test_imported_strings_are_named_by_their_digest_and_outlive_other_sweeps() -> None:
    digest = json.loads(run_main("import", "words.csv", "--json").stdout)["digest"]
    Path("words.csv").unlink()
    lines = ['name = "kept"', "model_seeds = [0]", "[fixed]", 'task = "file"']
    Path("kept.toml").write_text("\n".join([*lines, f'dataset = "{digest}"']))
    Path("other.toml").write_text('name = "other"\nmodel_seeds = [0]\n[fixed]\ntask = "parity"')
    assert run_main("sweep", "other.toml", "--queue").returncode == 0
    assert run_main("delete", "other", "--yes").returncode == 0
    assert "1 run queued" in run_main("sweep", "kept.toml", "--queue").stdout


SECRET = "s3cret"

SLIPS = [
    "postgresql//me:{}@host/db",
    "postgresql/me:{}@host/db",
    "postgresql:me:{}@host/db",
    "postgresql:/me:{}@host/db",
    "postgresq://me:{}@host/db",
    "Postgresql//me:{}@host/db",
    "psql//me:{}@host/db",
    "me:{}@host/db",
    "me:{}@host://db",
    "postgresql://me:p@{}@host/db",
    "postgresql//host/db?user=me&password={}",
    "mysql://me:{}@host/db",
]


SERVERS = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=me&password={}",
    "postgresql://127.0.0.1:1/db?user=me&pasword={}",
    "postgresql://127.0.0.1:1/db?sslpassword={}&sslmode=disable",
]


@pytest.mark.parametrize("url", [*SLIPS, *SERVERS])
def test_a_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        open_reader(url.format(SECRET))
    assert SECRET not in str(refused.value)
    assert ("expected" if url in SLIPS else "127.0.0.1") in str(refused.value)


def test_a_complete_sweep_is_reported_without_the_password(
    postgres_url: str, short_spec: Path
) -> None:
    # The user and the password as options, where they are as secret as before the @.
    url = make_url(postgres_url)
    options = {**url.query, "user": url.username or "postgres", "password": SECRET}
    named = url.set(username=None, password=None, query=options)
    secret = named.render_as_string(hide_password=False)
    for expected in ("trained 6 runs", "all runs are in postgresql://"):
        completed = run_main("sweep", str(short_spec), "--workers", "0", SEQCLS_DB=secret)
        assert completed.returncode == 0, completed
        assert expected in completed.stdout
        assert SECRET not in completed.stdout + completed.stderr
