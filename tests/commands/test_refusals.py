"""Mistakes are refused in one line, which names the value and what was expected."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from seqcls.errors import SeqclsError
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, resolve
from seqcls.questions import RunModel
from seqcls.strings.token_strings import TokenStrings
from sweeps import api
from tests.commands import refused, run_main
from tests.commands.agents import answers
from tests.conftest import ROOT

MAX_CHARACTERS = 330

RUN = "all_initializations/2"
DYCK = {"task": "dyck"}
EVEN = {"task": "counting", "alphabet": "ab", "formula": "a % 2 == 0"}
NEAR = "only balanced_strings lets choose how negative strings are drawn"
SPECS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dyck": (DYCK, {}),
    "copy": ({"task": "copy"}, {}),
    "two": (DYCK, {"bracket_types": [1, 2], "hidden_size": [2, 4]}),
    "never": ({**EVEN, "formula": "a < 0"}, {}),
    "dropout": ({"dropout_rate": 0.1}, {}),
    **{
        f"{field}_of_{task}": ({"task": task, field: "near"}, {})
        for field in ("negatives", "test_negatives")
        for task in ("copy", "contains_all")
    },
    "negatives_of_file": ({"task": "file", "path": "rows.csv", "negatives": "near"}, {}),
}
"""Specifications in the folder of a test: their fields and their axes."""

BUDGET = "more lower_magnitude_initializations --budget"
SEEDS = "seeds walkthrough --until"

SWEEP_COMMANDS = ("stop", "resume", "retry", "delete", "work", "status")

NO_NAMES = ("https://example.org", "example.org:443", "a b", "*", "a/b", "")
NO_PATHS = ("a b", "../x", "a//b", "/%2e", "<x>", ".")
"""Names that no browser could request, and paths that no proxy could serve."""
COMMANDS: list[tuple[str | list[str], *tuple[str, ...]]] = [
    ("sweep nope", "no sweep specification 'nope'"),
    ("sweep reprot", "did you mean 'report'?"),
    ("sweep report --device tpu", "device 'tpu'", "auto, cpu or cuda"),
    ("sweep report --engine jax", "engine 'jax'", "auto, torch, fused"),
    ("sweep report --precision half", "precision='half'", "'float32'"),
    ("sweep dropout.toml --engine fused", "cannot train this", "dropout_rate=0.1"),
    ("submit never.toml", "positive"),
    ("runs --where hidden_size", "FIELD=VALUE"),
    ("runs --where hiden_size=2", "did you mean 'hidden_size'?"),
    ("runs --where hidden_size=two", "hidden_size", "whole number"),
    ("runs --where accuracy=nan", "accuracy=nan"),
    ("runs --where state=", "state="),
    ("runs --where learning_rate=nan", "learning_rate=nan", "finite"),
    ("runs --where config.nix=1", "'config.nix'"),
    ("runs --sweep al_initializations", "did you mean 'all_initializations'?"),
    ("runs --columns acuracy", "did you mean 'accuracy'? There are configuration, id"),
    ("runs --columns id --columns accuracy", "--columns is given twice"),
    ("runs --below 0.5 --below 1", "--below is given twice"),
    ("compare walkthrough walkthrough --below 1 --below 1", "--below is given twice"),
    ("db check --db runs.db --db runs.db", "--db is given twice"),
    ("runs --outcome generalises", "--outcome generalises", "did you mean 'generalizes'?"),
    ("runs --learned-at 99", "--learned-at 99", "from 0 to 1"),
    ("runs --below -0.1", "--below -0.1", "from 0 to 1"),
    ("errors 999", "no run '999'"),
    ("errors walkthrough", "expected a run's id"),
    ("errors all_inits/2", "did you mean 'all_initializations'?"),
    ("causes walktrough", "did you mean 'walkthrough'"),
    *((f"{x} walktrough", "no sweep 'walktrough'", "'walkthrough'?") for x in SWEEP_COMMANDS),
    *((f"{x} short --db new.db", "new.db' does not exist") for x in SWEEP_COMMANDS[:4]),
    *((f"{x} --db new.db", "new.db' does not exist") for x in SWEEP_COMMANDS[4:]),
    ("predict walkthrough/5 abd", "unknown letter 'd'", "abc"),
    ("predict walkthrough/5 a{0}", "cannot read the count '0'"),
    ("predict walkthrough/5 a --epoch 99", "no weights of epoch 99"),
    ("explain nothing/2 ab", "no run 'nothing/2'"),
    (f"family {RUN} ab{{3}}", "no free counts", "one or two"),
    (f"figures {RUN} xyz --out new", "unknown letter 'x'"),
    (f"patch {RUN} ab --source abc", "expected as many"),
    (f"ablate {RUN} --part hed", "head, feed-forward, unit"),
    (f"ablate {RUN} --how off", "zero or mean"),
    (f"automaton {RUN} --states 0", "states=0", "more than 0"),
    (f"automaton {RUN} --seconds 0.00001", "before the first hypothesis"),
    (f"give {RUN} new --as gpt2", "layer_norm_eps=0.0", "above 0"),
    (f"{BUDGET} 1x", "--budget 1x", "as 4x"),
    (f"{BUDGET} x", "--budget x", "as 4x"),
    (f"{BUDGET} 1", "--budget 1", "more epochs than 30"),
    (f"{BUDGET} 900000", "900000", "expected less"),
    (f"{BUDGET} 4x --name walkthrough", "'walkthrough' already"),
    ([*f"{BUDGET} 4x --name".split(), " "], "name=' '"),
    ("more walkthrough", "--budget 4x", "--until 'share"),
    (f"{BUDGET} 4x --until many", "--budget 4x"),
    ("report walkthrough --out x.html --site x", "--out heads.html", "--site FOLDER"),
    *((f"compare {x}", "two or more configurations, or --all") for x in ("", "walkthrough")),
    ("compare all_inits --all", "all_initializations"),
    ("compare --all --sweep all_inits", "all_initializations"),
    ("compare --all --sweep all_initializations", "1 configuration with finished"),
    ("try paritty", "did you mean 'parity'"),
    (["try", "parity", "--network", "transformer rotory"], "did you mean 'rotary'"),
    ("try parity --positions none,rotory", "rotory"),
    ("try parity --network lstm --positions none,rotary", "positions"),
    ("try parity --seeds few", "few"),
    *((f"try parity --set {x}", "hidden_size") for x in ("hidden=16", "hidden_size")),
    (["try", "parity", "--name", " "], "name"),
    ("try nothere.csv", "path='nothere.csv'"),
    *((f"try {x}=a.csv", "`seqcls try a.csv") for x in ("file --set dataset", "parity --set path")),
    ("import rows.csv --what rows", "--what rows", "predictions, weights, strings"),
    ("more walktrough --budget 4x", "'walktrough'", "did you mean 'walkthrough'"),
    ([*SEEDS.split(), "share ± 0 %"], "± 0 %", "± 50 %"),
    (f"{SEEDS} many", "until='many'", "'share ± 10 %'"),
    ([*SEEDS.split(), "share ± 5 %", "--most", "0"], "most_seeds=0"),
    (["seeds", "walktrough", "--until", "share ± 5 %"], "'walktrough'"),
    ("draw dyck.toml -n 0", "-n 0", "at least 1"),
    ("draw dyck.toml --part dev", "dev", "train, validation"),
    ("draw dyck.toml --label right", "right", "positive, negative"),
    ("draw copy.toml --label positive", "only strings of languages have labels"),
    ("draw two.toml", "2 ways", "bracket_types=1"),
    ("draw dyck.toml --where brackets=1", "did you mean 'bracket_types'?"),
    ("draw dyck.toml --where max_depth=3", "max_depth=3", "none of the 1 configurations"),
    *(
        (f"{command} {name}.toml", "='near': not read by", NEAR)
        for command in ("draw", "shortcuts", "submit")
        for name in SPECS
        if "_of_" in name
    ),
    *((["dashboard", "--name", x], f"--name {x}: expected ") for x in NO_NAMES),
    *((["dashboard", "--base-path", x], f"--base-path {x}: expected ") for x in NO_PATHS),
    *(
        (f"dashboard --host {x} --port 8599", f"--host {x}: others could launch", "--read-only")
        for x in ("0.0.0.0", "::")
    ),
    *(
        (f"{command} --db {path}", f"cannot open '{path}'")
        for command in ("runs", "stop short")
        for path in ("loop", "/dev/null")
    ),
    ("populations --where=heads=2", "--where heads=2"),
    ("report --site new --sweep none", "no sweep 'none'"),
    (["dashboard", "--host", "no such host"], "no such host", "address of this machine"),
    *(
        (f"report walkthrough -o {path}", path)
        for path in ("x" * 260, "no/out.html", "loop/out.html", "loop", "/dev/null", "/dev/full")
    ),
    *(
        (f"report walkthrough -o {path} {force}", f"'{path}' already exists")
        for path in ("runs.db", "link.db")
        for force in ("", "--force")
    ),
]
"""Command lines, and parts of their messages."""

NOTHING: tuple[Any, ...] = (None, 1.5, True, ["nope"], [10**6])
NO_SPECS: tuple[Any, ...] = (None, 5, [1])
NO_STRINGS: tuple[Any, ...] = (None, 5, {"a"}, ["a", "x"], (7,))
NO_BUDGETS: tuple[Any, ...] = (True, 4.0, "-4")

NO_ALPHABETS = (
    ("cafe\u0301", "U+0065 and U+0301", "U+00E9"),
    ("a\u212b", "U+212B", "U+00C5"),
    ("cafe\u0301 b", "U+0063 U+0061 U+0066 U+00E9", ""),
)


def estimate(store: api.Store, alphabet: str) -> object:
    fixed = {**EVEN, "alphabet": alphabet}
    return api.estimate(store, {"name": "s", "model_seeds": [0], "fixed": fixed})


CALLS: list[tuple[Callable[[api.Store], object], *tuple[str, ...]]] = [
    (lambda x: api.predict(x, RUN, ["xyz"]), "'x'"),
    (lambda x: api.causes(x, "walkthrough", outcome=1), "outcome", "1"),
    (lambda x: api.causes(x, "walkthrough", hidden_sise=3), "did you mean 'hidden_size'"),
    (lambda x: api.runs(x, outcome=1), "outcome", "1"),  # type: ignore[arg-type]
    (lambda x: api.causes(x, "walkthrough", below=95), "from 0 to 1"),
    (lambda x: api.runs(x, hidden_sise=3), "did you mean 'hidden_size'"),
    (lambda x: api.errors_of_run(x, RUN, sort="lenght"), "did you mean 'length'"),
    (lambda x: api.ablate(x, RUN, ["hed"]), "'hed'", "head, feed-forward, unit"),
    (lambda x: api.ablate(x, RUN, how="off"), "'off'", "zero or mean"),
    (lambda x: api.report(x, "walktrough"), "did you mean 'walkthrough'"),
    (lambda x: api.more(x, "walkthrough", "4", learned_at=2.0), "learned_at=2.0", "from 0 to 1"),
    *((lambda x, own=own: api.more(x, "walkthrough", own), f"{own}") for own in NO_BUDGETS),
    *((lambda x, own=own: api.stop(x, own), "") for own in NOTHING),
    *((lambda x, own=own: estimate(x, own), a, b) for own, a, b in NO_ALPHABETS),
    *((lambda x, own=own: api.submit(x, own), "is not a specification") for own in NO_SPECS),
    *((lambda x, own=own: api.model(x, RUN).answer(own), "") for own in NO_STRINGS),
]  # fmt: skip
"""Calls from Python."""

ESTIMATE = 'name = "x"\nmodel_seeds = [0]\n[fixed]\n'

AGENT_CALLS: list[tuple[str, dict[str, Any], *tuple[str, ...]]] = [
    ("errors", {"run": "nix"}, "no run 'nix'"),
    ("runs", {"outcome": "well"}, "outcome"),
    ("runs", {"where": ["hiden_size=2"]}, "hidden_size"),
    ("predict", {"run": "1", "strings": ["xyz"]}, "xyz"),
    ("estimate", {"specification": "/etc/passwd"}, "known/tomita"),
    ("estimate", {"specification": "known/../../x"}, "known/tomita"),
    ("estimate", {"specification": "name = ["}, "no TOML"),
    ("estimate", {"specification": f'{ESTIMATE}path = "/etc/passwd"'}, "no file of this machine"),
    ("estimate", {"specification": {"name": "x"}}, "specification={"),
    ("estimate", {"specification": "x = " + "[" * 5000}, "no TOML"),
    ("theory", {"task": "party"}, "parity"),
    ("errors", {}, "run"),
    ("errors", {"run": None}, "run=null", "string"),
    ("verdict", {"run": [1]}, "run=[1]", "string"),
    ("errors", {"run": 1, "rows": 500}, "rows=500", "200"),
    ("errors", {"run": 1, "first": "x"}, 'first="x"', "integer"),
    ("runs", {"learned_at": 2}, "learned_at=2", "equal to 1"),
    ("runs", {"where": "hiden_size=2"}, "where='hiden_size=2'"),
    ("runs", {"sweep": ["a"]}, 'sweep=["a"]', "string"),
    ("runs", {"sweeps": "a"}, "'sweeps'", "did you mean 'sweep'?"),
    ("predict", {"run": 1, "strings": [None]}, "strings=[null]", "string"),
    ("predict", {"run": 1, "strings": {"a": 1}}, "list"),
    ("compare", {"a": "walkthrough", "b": {}}, "b={}", "string"),
]
"""Invalid calls of tools by an agent."""


def check(message: str, words: tuple[str, ...]) -> None:
    """A refusal is a short line of words for a user, with these among them."""
    assert "\n" not in message
    assert "Traceback" not in message
    assert len(message.partition(": known are ")[0]) < MAX_CHARACTERS, message
    for word in words:
        assert word in message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the shipped database, and specifications."""
    folder = tmp_path_factory.mktemp("refusals")
    shutil.copy(ROOT / "runs.db", folder)
    (folder / "link.db").symlink_to("runs.db")
    (folder / "loop").symlink_to("loop")
    (folder / "rows.csv").write_text(
        "tokens,label\n" + "".join(f"{x:b},{x % 2}\n" for x in range(60))
    )
    for name, (fixed, axes) in SPECS.items():
        spec = {"name": "asked", "model_seeds": [0], "fixed": fixed, "axes": axes}
        (folder / f"{name}.toml").write_text(tomli_w.dumps(spec))
    return folder


@pytest.fixture
def unchanged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, as the working directory of a test that writes nothing there."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SEQCLS_DB", "runs.db")
    files, content = sorted(folder.iterdir()), (folder / "runs.db").read_bytes()
    yield folder
    assert sorted(folder.iterdir()) == files
    assert (folder / "runs.db").read_bytes() == content


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: str(row[0])[:60])
def test_a_command_refuses_a_mistake_in_one_line(row: tuple[Any, ...]) -> None:
    line, *words = row
    completed = run_main(*(line.split() if isinstance(line, str) else line))
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("seqcls: ")
    check(completed.stderr.removesuffix("\n"), tuple(words))


@pytest.mark.parametrize("index", range(len(CALLS)))
def test_python_refuses_a_mistake_in_one_line(unchanged: Path, index: int) -> None:
    call, *words = CALLS[index]
    with pytest.raises(SeqclsError) as refused:
        call(api.open_store(unchanged / "runs.db"))
    check(str(refused.value), tuple(words))


def test_an_agent_gets_mistakes_refused_in_one_line(unchanged: Path) -> None:
    replies = answers(api.open_reader(str(unchanged / "runs.db")), [row[:2] for row in AGENT_CALLS])
    for (_, _, *words), answer in zip(AGENT_CALLS, replies, strict=True):
        (content,) = answer.content
        assert answer.is_error, content
        check(content.text, tuple(words))


NO_LETTERS: list[tuple[Any, int, str]] = [
    ([2], 1, "2"),
    ([0, -1], 2, "-1"),
    ([0, 255], 2, "255"),
    ([2**70], 1, f"{2**70}"),
    ([1.7], 1, "1.7"),
    ([0.0], 1, "0.0"),
    ([True], 1, "True"),
    ([None], 1, "None"),
    (np.array([0, 2], dtype=np.uint8), 2, "2"),
    (np.array([1.0]), 1, "1.0"),
    ([[0, 1]], 1, "[0, 1]"),
]
"""Strings by numbers, the place of one that no letter has, and how it is written."""


def test_a_number_without_a_letter_is_refused_in_every_question() -> None:
    problem = resolve(configuration({"task": "parity", "hidden_size": 4}))
    weights = {name: x.numpy() for name, x in initial_parameters(problem.network, 0).items()}
    model = RunModel(problem, weights)
    asks: tuple[Callable[[Any], object], ...] = (
        lambda x: model.logits(["01", x]),
        lambda x: model.ask_all(["01", x]),
        lambda x: model.answer(x),
        lambda x: TokenStrings.of_lists(2, [x]),
    )
    for string, place, number in NO_LETTERS:
        for ask in asks:
            with pytest.raises(SeqclsError) as refused:
                ask(string)
            words = (f"token {place}", f"no letter number {number};", "from 0 to 1")
            check(str(refused.value), words)
    with pytest.raises(SeqclsError, match="over 3 letters: the model reads 2"):
        model.ask(TokenStrings.of_lists(3, [[0]]))


def test_a_mistake_leaves_no_file_behind(tmp_path: Path) -> None:
    message = refused("runs", "--db", str(tmp_path / "x.db"))
    check(message.removesuffix("\n"), ("x.db' does not exist", "seqcls sweep report --db"))
    refused("sweep", "nope", "--db", str(tmp_path / "x.db"))
    assert list(tmp_path.iterdir()) == []
