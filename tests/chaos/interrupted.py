"""Ends a command at some of its changes of files, and tries what users do next.

Run as `python -m tests.chaos.interrupted FOLDER COMMAND SEED CHANGES`, with `file_changes.so`
preloaded; prints what it saw as JSON. Each command is a fork of this process, which has loaded
everything: at its n-th change of a file it is killed, or the disk is full from then on. All reading
commands must then work, and the same command, given again, must do what it would have done.
"""

import ctypes
import gc
import json
import os
import random
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dashboard.cli  # noqa: F401 # adds the last of the commands
from sweeps.store import database
from sweeps.store.opening import open_reader
from tests.chaos.contents import contents
from tests.commands import printed, run_main
from tests.conftest import ASSETS, SHORT
from tests.databases import save_parity
from tests.stock import stock

TASK = '{"task": "contains_all", "test_max_length": 12}'
PARITY = '{"task": "parity", "test_max_length": 40, "test_size": 200}'

KILL, FULL_FROM_NOW = 1, 3

SPEC = "\n".join(
    [
        'name = "{name}"\nmodel_seeds = "{seeds}"\n[fixed]',
        *(f"{name} = {value}" for name, value in SHORT.items()),
        "test_max_length = 30",
    ]
)
TESTED = "tokens,label\n" + "".join(f"{text},{text.count('a') % 2}\n" for text in ("a", "b", "ab"))
PREDICTED = "model,seed,tokens,prediction\n" + "".join(
    f"{model},{seed},{text},1\n" for model in "mn" for seed in (0, 1) for text in ("a", "b", "ab")
)

COMMANDS = {
    name: shlex.split(line)
    for name, line in {
        "pack": "pack --db runs.db",
        "convert": "db convert old.db converted.db",
        "sweep to queue": "sweep new.toml --queue --db runs.db",
        "sweep to queue in a new file": "sweep new.toml --queue --db new.db",
        "sweep": "sweep new.toml --workers 0 --db runs.db",
        "work": "work --workers 0 --db queued.db",
        "stop": "stop queued --db queued.db",
        "resume": "resume stopped --db stopped.db",
        "resume what failed": "resume done --failed --db runs.db",
        "delete": "delete done --yes --db runs.db",
        "merge": "merge other.db --db runs.db",
        "merge into a new file": "merge runs.db other.db --db new.db",
        "import": "import predicted.csv --sweep lab --dataset tested.csv --db runs.db",
        "import weights": f"import given --task '{TASK}' --db runs.db",
        "try": "try first --seeds 1 --set train_size=256 --set max_num_epochs=1 --workers 0 "
        "--db runs.db",
        "give": "give done/0 out --db runs.db",
        "export": "export out --db runs.db",
        "export answers": "export out --format jsonl --db runs.db",
        "report": "report done --out report.html --db runs.db",
        "report as a site": "report --site out --db runs.db",
        "figures": "figures done/0 ab --out out --db runs.db",
        "remedies": "remedies done/0 --save out --db runs.db",
        "causes": "causes done --db runs.db",
        "verdict": "verdict done/1 --db runs.db",
        "prove": "prove hand/0 --certificate proof.json --db hand.db",
        "readers": "db readers --db runs.db",
        "more": "more done --budget 2x --learned-at 1 --workers 0 --db runs.db",
        "more to queue": "more done --budget 2x --learned-at 1 --queue --db runs.db",
        "more seeds": "more done --until 'learned ± 10 %' --most 4 --queue --db runs.db",
        "sensitive": "sensitive done/0 --times 1 --db runs.db",
    }.items()
}
"""Commands that change files, by name."""

ONLY_READING = {
    *("runs", "errors", "predict", "compare", "theory", "cache", "dashboard", "status"),
    *("estimate", "draw", "shortcuts", "data", "explain", "family", "minimal", "rules", "states"),
    *("patch", "ablate", "automaton", "verify", "check", "mcp"),
}
"""Commands that change no file but those of the cache."""

READING = [
    line.split()
    for line in (
        *("status", "runs", "runs --failing", "errors done/0", "predict done/0 aab"),
        *("explain done/0 ab{20}", "verdict done/0", "verify", "db check", "runs --json"),
    )
]
"""Reading commands, each run on the database that was being changed."""

ONLY_OF_THIS_VERSION = "convert"


def in_fork(folder: Path, commands: Sequence[Sequence[str]], at: int = 0, how: int = 0) -> Any:
    """Runs commands one after another in a process of its own, in this folder.

    Args:
        folder: where they run; changes below it count.
        commands: their arguments.
        at: the change of a file at which something happens; none where it is 0.
        how: what happens there.

    Returns:
        The status and words of each, and how many changes there were; None where it was killed.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receiving)
            os.chdir(folder)
            database._sqlite.cache_clear()
            library: Any = ctypes.CDLL(os.environ["LD_PRELOAD"])
            library.changes_so_far.restype = ctypes.c_long
            library.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
            library.arm(f"{folder}/".encode(), at, how)
            ended = [run_main(*command) for command in commands]
            changes = library.changes_so_far()
            library.arm(b"", 0, 0)
            results = [(one.returncode, one.stdout + one.stderr) for one in ended]
            os.write(sending, json.dumps([results, changes]).encode())
        except BaseException as error:
            os.write(sending, json.dumps([[(99, repr(error))], 0]).encode())
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as answer:
        sent = answer.read()
    os.waitpid(child, 0)
    return json.loads(sent) if sent else None


PREPARING = (
    "sweep done.toml --workers 0 --db runs.db",
    "sweep other.toml --workers 0 --db other.db",
    # A finding, so that there is one before and after.
    "verdict done/0 --db runs.db",
    "give done/0 given --db runs.db",
    "pack --db runs.db",
)


def prepare(folder: Path) -> None:
    """Fills a folder with the files that the commands start from."""
    for name, seeds in {"done": "0..1", "new": "2..3", "other": "4..5", "queued": "6..7"}.items():
        (folder / f"{name}.toml").write_text(SPEC.format(name=name, seeds=seeds))
    (folder / "stopped.toml").write_text(SPEC.format(name="stopped", seeds="6..7"))
    (folder / "tested.csv").write_text(TESTED)
    (folder / "predicted.csv").write_text(PREDICTED)
    save_parity(folder / "parity.safetensors")
    shutil.copy(ASSETS / "databases" / "0005.db", folder / "old.db")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for line in PREPARING:
            printed(*line.split())
        printed(
            "load", "parity.safetensors", "--task", PARITY, "--sweep", "hand", "--db", "hand.db"
        )
        for name in ("queued", "stopped"):
            shutil.copy("runs.db", f"{name}.db")
            printed("submit", f"{name}.toml", "--db", f"{name}.db")
        printed("stop", "stopped", "--db", "stopped.db")
        for name in ("runs", "other", "hand", "queued", "stopped"):
            printed("pack", "--db", f"{name}.db")


def main(folder: Path, name: str, seed: int, changes: int) -> dict[str, Any]:
    """Interrupts a command at some changes of files, in turn by a kill and by a full disk."""
    prepared, command, generator = stock("commands"), COMMANDS[name], random.Random(seed)
    # Loaded once, here, and not by each of the processes that this one becomes.
    reading = _copy(prepared, folder / "read")
    for one in READING:
        assert run_main(*one, "--db", str(reading / "runs.db")).returncode in (0, 1), one
    gc.freeze()
    whole = _copy(prepared, folder / "whole")
    (ended,), every = in_fork(whole, [command])
    if ended[0] != 0:
        raise AssertionError(f"{name} ends with {ended}")
    expected = _result(whole, command)
    faults = []
    for number in range(changes):
        at, how = generator.randint(1, every), (KILL, FULL_FROM_NOW)[(seed + number) % 2]
        tried = _copy(prepared, folder / "tried")
        in_fork(tried, [command], at, how)
        what = "killed" if how == KILL else "full"
        faults += [
            f"{what} at {at} of {every}: {fault}" for fault in _faults(tried, name, expected)
        ]
    return {"changes": every, "faults": faults}


def _faults(folder: Path, name: str, expected: Any) -> list[str]:
    """The faults after a command was interrupted."""
    command = COMMANDS[name]
    db = _written_db(command)
    faults = []
    if name != ONLY_OF_THIS_VERSION and (folder / db).exists() and db != "new.db":
        reading = [[*one, "--db", db] for one in READING]
        results, _ = in_fork(folder, reading)
        faults += [
            f"{' '.join(one)} ends with {status}: {text[-200:]}"
            for one, (status, text) in zip(reading, results, strict=True)
            if status not in (0, 1) and "no sweep 'done'" not in text
        ]
    for left in folder.rglob(".seqcls-*"):
        os.utime(left, (0, 0))
    ((status, text),), _ = in_fork(folder, [command])
    if "replace it with --force" in text:
        # Some of its files were moved, and are whole.
        ((status, text),), _ = in_fork(folder, [[*command, "--force"]])
    # It was done already, and its result is compared below.
    done_before = (" is there", "has sweeps already", "is already in the database", "no sweep")
    if status != 0 and not any(words in text for words in done_before):
        faults.append(f"again: ends with {status}: {text[-200:]}")
    if (result := _result(folder, command)) != expected:
        faults.append(
            f"again: {[key for key in expected if result.get(key) != expected[key]]} differ"
        )
    if lasting := [str(path.relative_to(folder)) for path in folder.rglob(".seqcls-*")]:
        faults.append(f"left behind: {lasting}")
    return faults


def _result(folder: Path, command: Sequence[str]) -> dict[str, Any]:
    """The result of a command: contents of its database, names of files."""
    db = _written_db(command)
    beside = ("-wal", "-shm", "-journal", ".lock")
    paths = (path for path in folder.rglob("*.*") if not path.name.endswith(beside))
    files = sorted(str(path.relative_to(folder)) for path in paths)
    return {"files": files, **contents(open_reader(str(folder / db)))}


def _written_db(command: Sequence[str]) -> str:
    """The database that a command writes; `convert` names it last."""
    return command[command.index("--db") + 1] if "--db" in command else command[-1]


def _copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
