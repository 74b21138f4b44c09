"""Every fault of the table can be planted; whether tests see it takes minutes (`make chaos`)."""

import ast
from pathlib import Path

import pytest

from tests.chaos.planted import (
    NOBODY,
    ROOT,
    Fault,
    caught_by,
    copy_tree,
    failed,
    faults,
    run_tests,
)
from tests.conftest import LONG


def test_every_fault_can_be_planted_and_its_tests_are_there() -> None:
    for fault in faults():
        planted = fault.planted(ROOT)
        if fault.file.endswith(".py"):
            ast.parse(planted)
        assert planted != (ROOT / fault.file).read_text(), fault.name
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(), fault.name


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    copy_tree(root)
    return root


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not LONG, reason="a part of `make chaos`")
@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_is_seen_by_a_test_that_passes_without_it(fault: Fault, copy: Path) -> None:
    path = copy / fault.file
    path.write_text(fault.planted(copy))
    try:
        by = caught_by(fault.tests, copy, ())
    finally:
        path.write_bytes((ROOT / fault.file).read_bytes())
    assert not by.startswith(NOBODY), by
    assert failed(run_tests(copy, by)[1]) == []


def test_files_that_cannot_be_read_are_no_test_that_sees_a_fault() -> None:
    said = """
FAILED tests/unit/test_x.py::test_y[a b] - assert 1 == 2
ERROR tests/unit/test_x.py - ImportError: no module
ERROR tests/unit/test_x.py::test_z - OSError
ERROR: not found: tests/unit/test_x.py::test_w
"""
    assert failed(said) == ["tests/unit/test_x.py::test_y[a b]", "tests/unit/test_x.py::test_z"]
