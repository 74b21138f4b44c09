"""Workers killed without warning lose nothing, repeat nothing and leave nothing half-done."""

import json
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.chaos.contents import contents
from tests.chaos.kills import POINTS
from tests.chaos.sending import training_processes
from tests.conftest import LONG, ROOT, SHORT

SWEEP = [sys.executable, "-m", "sweeps", "sweep"]

SPEC = "\n".join(
    [
        'name = "pool"\nmodel_seeds = "0..15"\n[fixed]',
        *(f"{name} = {value}" for name, value in {**SHORT, "train_size": 2048}.items()),
        "[axes]\ntrain_seed = [1, 2, 3, 4]\nhidden_size = [2, 3]\n",
    ]
)


@pytest.mark.timeout(3600)
def test_a_killed_worker_loses_nothing_and_doubles_nothing(tmp_path: Path, long: bool) -> None:
    kills = 300 if long else len(POINTS) * 3 // 2
    command = [sys.executable, "-m", "tests.chaos.kills", str(kills), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    seen = json.loads(said.stdout.splitlines()[-1])
    print(seen)
    assert seen["kills"] == kills
    assert set(seen["points"]) == {*POINTS, "at a random moment"}
    assert seen["differing"] == []
    assert seen["damages"] == []


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="takes minutes")
def test_who_is_killed_beside_others_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    kills = 500
    command = [sys.executable, "-m", "tests.chaos.kills", str(kills), str(tmp_path), "beside"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    seen = json.loads(said.stdout.splitlines()[-1])
    print(seen)
    assert seen["kills"] >= kills
    assert seen["points"]["beside"] > kills / 4
    assert seen["differing"] == []
    assert seen["damages"] == []


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not LONG, reason="takes minutes")
def test_killed_processes_of_a_pool_cost_attempts_and_no_result(tmp_path: Path) -> None:
    spec = tmp_path / "pool.toml"
    spec.write_text(SPEC)
    undisturbed, killed = tmp_path / "undisturbed.db", tmp_path / "killed.db"
    command = [*SWEEP, str(spec), "--workers", "2", "--db"]
    subprocess.run([*command, str(undisturbed)], check=True, capture_output=True)
    generator = random.Random(2)
    for number in range(10):
        path = killed.with_stem(f"killed{number}")
        kills = 0
        while kills < 5:
            process = subprocess.Popen([*command, str(path)], stderr=subprocess.DEVNULL)
            kills += kill_some(process, generator)
            if process.returncode == 0:
                break
        # Three lost attempts make a run fail; it may be the fault of the run, for all that is seen.
        retry = [sys.executable, "-m", "sweeps", "retry", "pool", "--db", str(path)]
        subprocess.run(retry, check=True, capture_output=True)
        subprocess.run([*command, str(path)], check=True, capture_output=True)
        assert kills > 0
        assert contents(open_reader(str(path))) == contents(open_reader(str(undisturbed)))
        assert verify(open_reader(str(path))).damages == []


def kill_some(command: "subprocess.Popen[bytes]", generator: random.Random) -> int:
    """Kills processes that train for a command until it ends; how many that were."""
    kills = 0
    while command.poll() is None:
        time.sleep(generator.uniform(0.2, 1))
        with suppress(psutil.NoSuchProcess):
            training = training_processes(psutil.Process(command.pid))
            if training and kills < 5:
                generator.choice(training).kill()
                kills += 1
    return kills


@pytest.mark.timeout(3600)
def test_a_killed_command_takes_its_processes_along_and_is_resumed(
    tmp_path: Path, long: bool
) -> None:
    spec = tmp_path / "pool.toml"
    spec.write_text(SPEC)
    undisturbed, killed = tmp_path / "undisturbed.db", tmp_path / "killed.db"
    started = time.monotonic()
    subprocess.run([*SWEEP, str(spec), "--db", str(undisturbed)], check=True, capture_output=True)
    seconds = time.monotonic() - started
    generator = random.Random(1)
    kills = 0
    for _ in range(30 if long else 2):
        process = subprocess.Popen(
            [*SWEEP, str(spec), "--db", str(killed)],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(generator.uniform(0.2, 1) * seconds)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills > 0
    store = open_writer(str(killed))
    work(store, [writer.submit(store, read_spec(spec))], WorkOptions(0))
    assert contents(open_reader(str(killed))) == contents(open_reader(str(undisturbed)))
    assert verify(open_reader(str(killed))).damages == []
