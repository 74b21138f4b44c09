"""Every fault of the table can be planted; whether tests see it takes minutes (`make chaos`)."""

import ast

import pytest

from tests.chaos.planted import ROOT, Fault, failed, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_can_be_planted_and_its_tests_are_there(fault: Fault) -> None:
    planted = fault.planted(ROOT)
    if fault.file.endswith(".py"):
        ast.parse(planted)
    assert planted != (ROOT / fault.file).read_text()
    assert fault.tests
    for test in fault.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text()


def test_files_that_cannot_be_read_are_no_test_that_sees_a_fault() -> None:
    said = """
FAILED tests/unit/test_x.py::test_y[a b] - assert 1 == 2
ERROR tests/unit/test_x.py - ImportError: no module
ERROR tests/unit/test_x.py::test_z - OSError
ERROR: not found: tests/unit/test_x.py::test_w
"""
    assert failed(said) == ["tests/unit/test_x.py::test_y[a b]", "tests/unit/test_x.py::test_z"]
