"""Workers killed without warning lose nothing, repeat nothing and leave nothing half-done."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeps.store.engine import open_reader
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.chaos.kills import POINTS
from tests.conftest import ROOT, SHORT

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
    subprocess.run([*SWEEP, str(spec), "--db", str(killed)], check=True, capture_output=True)
    assert kills > 0
    assert contents(open_reader(str(killed))) == contents(open_reader(str(undisturbed)))
    assert verify(open_reader(str(killed))).damages == []
