"""Every fault of the table can be planted; whether tests see it takes minutes (`make chaos`)."""

import ast
from pathlib import Path

import pytest

from tests.chaos import __main__ as campaign
from tests.chaos.conftest import long_alone
from tests.chaos.planted import (
    ROOT,
    Fault,
    copy_tree,
    failed,
    faults,
    run_tests,
)


def test_every_fault_can_be_planted_and_its_tests_exist() -> None:
    for fault in faults():
        planted = fault.planted(ROOT)
        if fault.file.endswith(".py"):
            ast.parse(planted)
        assert planted != (ROOT / fault.file).read_text(), fault.name
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(), fault.name


def test_every_chaos_file_belongs_to_a_part_that_exists() -> None:
    files = {campaign.file_of(path) for paths in campaign.FILES_BY_PART.values() for path in paths}
    assert all((ROOT / file).exists() for file in files)
    own = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert own == {Path(x).name for x in files if x.startswith("tests/chaos/")}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    copy_tree(root)
    return root


@pytest.mark.timeout(1800)
@long_alone
@pytest.mark.parametrize("fault", faults(), ids=lambda fault: f"{fault.name} ({fault.file})")
def test_a_planted_fault_fails_a_test_that_passes_without_it(fault: Fault, copy: Path) -> None:
    path = copy / fault.file
    path.write_text(fault.planted(copy))
    try:
        caught = failed(run_tests(copy, "-x", *fault.tests)[1])
    finally:
        path.write_bytes((ROOT / fault.file).read_bytes())
    print(f"caught by {caught}")
    assert caught
    assert failed(run_tests(copy, caught[0])[1]) == []
