"""Errors spell parameters for Python and for commands."""

import pickle

from seqcls.errors import ConfigError, Parameter
from sweeps.cli.parameters import option


def test_error_spells_parameters_for_python_and_for_commands() -> None:
    error = ConfigError("expected no ", Parameter("sort", "size"), ", or ", Parameter("force"))
    assert str(error) == "expected no sort='size', or force"
    assert error.render(option) == "expected no --sort size, or --force"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
