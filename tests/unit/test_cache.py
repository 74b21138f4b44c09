"""The cache of strings and machine code: bounded, checked, listed and cleared."""

import ast
import json
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

from seqcls import cache
from seqcls.engines.compiled import machine_code
from seqcls.engines.compiled.machine_code import (
    FUSED,
    TAPE,
    is_compiled,
    machine_code_folder,
    sources_of,
)
from seqcls.problem import resolve
from seqcls.sampling.streams import Stream
from sweeps.cli.app import app
from tests.conftest import short_config


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_cache_drops_least_recently_used_strings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strings = Stream(resolve(short_config()).train)
    for epoch in range(4):
        strings.epoch(epoch)
    names = ["0.strings", "1.strings", "2.strings", "3.strings"]
    assert files(folder) == set(names)
    for age, path in enumerate(sorted(folder.rglob("*.strings"))):
        os.utime(path, (age, age))
    # The oldest was just used again.
    Stream(resolve(short_config()).train).epoch(0)
    (entry,) = cache.cache_entries()
    cache.trim(entry.size * 3 // 4)
    assert files(folder) == set(names) - {"1.strings"}
    # Written beyond the limit: what is new stays.
    monkeypatch.setattr(cache, "MAX_STRING_BYTES", entry.size // 2)
    monkeypatch.setattr(cache, "TRIM_BYTES", 1)
    sampler = resolve(short_config(train_seed=1)).train
    Stream(sampler).epoch(0)
    (entry,) = cache.cache_entries()
    assert entry.size <= cache.MAX_STRING_BYTES
    assert len(list(folder.rglob("0.strings"))) == 2
    read, drawn = Stream(sampler).epoch(0), next(sampler.epochs())
    assert np.array_equal(read.strings.letters, drawn.strings.letters)


def test_cache_command_lists_and_clears(folder: Path) -> None:
    Stream(resolve(short_config()).test).epoch(0)
    result = CliRunner().invoke(app, ["cache", "--json"])
    (shown,) = json.loads(result.stdout)
    assert (shown["what"], shown["files"]) == ("strings", 1)
    result = CliRunner().invoke(app, ["cache", "--clear"])
    assert result.exit_code == 0
    assert f"{shown['bytes']:,} bytes removed" in result.stderr
    assert files(folder) == set()


def made_anew(source: Path) -> int:
    """Compiles the function of a file like an entry of an engine, and calls it."""
    from seqcls.engines.compiled.compiling import entry

    module = ModuleType(source.stem)
    exec(compile(source.read_text(), str(source), "exec"), vars(module))
    # Code read from the cache imports its module by name.
    sys.modules[source.stem] = module
    try:
        return int(entry(FUSED)(module.twice)(21))
    finally:
        del sys.modules[source.stem]


def test_machine_code_is_shared_by_checkouts_and_recompiled_when_damaged(
    folder: Path, tmp_path: Path
) -> None:
    for place, age in (("here", 0), ("there", 0), ("here", 1000)):
        source = tmp_path / place / "doubling.py"
        source.parent.mkdir(exist_ok=True)
        source.write_text("def twice(x):\n    return 2 * x\n")
        os.utime(source, (age, age))
        assert made_anew(source) == 42
    machine_code_folder(FUSED).joinpath("float32.compiled").touch()
    assert is_compiled("float32", FUSED)
    whole = {path: path.read_bytes() for path in folder.rglob("*.nb[ci]")}
    assert sorted(path.suffix for path in whole) == [".nbc", ".nbi"]
    for path, content in whole.items():
        for damaged in (b"", content[: len(content) // 2], b"x" * len(content)):
            path.write_bytes(damaged)
            assert made_anew(source) == 42
            assert is_compiled("float32", FUSED)
            path.write_bytes(damaged)
            assert not is_compiled("float32", FUSED)
            assert not path.exists()
            assert made_anew(source) == 42


ENGINES = Path(machine_code.__file__).parent.parent


def engine_imports(source: Path) -> set[Path]:
    """The modules of compiled engines that a file imports."""
    names = set[str]()
    for line in ast.parse(source.read_text()).body:
        if isinstance(line, ast.ImportFrom) and str(line.module).startswith("seqcls.engines."):
            names |= {str(line.module), *(f"{line.module}.{x.name}" for x in line.names)}
    files = {(ENGINES.parent.parent / name.replace(".", "/")).with_suffix(".py") for name in names}
    # Names imported from shared modules are no modules.
    return {file for file in files if file.exists()}


@pytest.mark.parametrize("part", [FUSED, TAPE])
def test_machine_code_key_covers_all_imported_sources(part: str) -> None:
    sources = set(sources_of(part))
    kernels = {
        source
        for source in ENGINES.rglob("*.py")
        for name in re.findall(r"^@entry\((\w+)\)", source.read_text(), re.M)
        if getattr(machine_code, name) == part
    }
    assert kernels
    reached, left = set[Path](), kernels
    while left:
        reached |= left
        left = set[Path]().union(*map(engine_imports, left)) - reached
    assert reached <= sources
