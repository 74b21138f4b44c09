"""The `seqcls` command as users meet it, in a new process or in this one."""

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import warnings
from typing import Any

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dashboard.cli import app, main
from sweeps.processes import SIGNALS

SEQCLS = [sys.executable, "-m", "sweeps"]


def run_main(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs the command in this process: starting and ending another takes most of the time."""
    log, show = logging.getLogger("sweeps"), warnings.showwarning
    handlers, ends = list(log.handlers), {end: signal.getsignal(end) for end in SIGNALS}
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patched.setattr(sys, "argv", ["seqcls", *arguments])
        # What a process leaves to the system at its end would never be collected in this one.
        patched.setattr("sweeps.cli.app.end_without_collecting", lambda: None)
        patched.setattr(os, "execve", _replace_no_process)
        for name, value in environment.items():
            patched.setenv(name, value)
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            warnings.showwarning, log.handlers = show, handlers
            for number, handler in ends.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def printed(*arguments: str, **environment: str) -> str:
    """The standard output of a command that succeeds."""
    completed = run_main(*arguments, **environment)
    assert completed.returncode == 0, completed
    return completed.stdout


def printed_json(*arguments: str, **environment: str) -> Any:
    """Its JSON output, parsed."""
    return json.loads(printed(*arguments, "--json", **environment), parse_constant=refuse)


def refuse(constant: str) -> None:
    """Fails where a text has words of Python that JSON has not."""
    raise AssertionError(f"{constant} is no JSON")


def _replace_no_process(program: str, *_: object) -> None:
    raise AssertionError(f"{program} would take the place of this process")


def refused(*arguments: str, **environment: str) -> str:
    """The one-line message with which the command refuses a user's mistake."""
    return refusal(run_main(*arguments, **environment))


def refusal(completed: "subprocess.CompletedProcess[str]") -> str:
    """The one-line message of a completed command that refused a user's mistake."""
    assert completed.returncode == 2, completed
    assert completed.stdout == ""
    assert completed.stderr.startswith("seqcls: ")
    assert completed.stderr.count("\n") == 1
    return completed.stderr


def shown_commands() -> dict[str, TyperCommand]:
    """Every command that the help shows, by its name."""
    found: dict[str, TyperCommand] = {}
    groups = [get_command(app)]
    for group in groups:
        assert isinstance(group, TyperGroup)
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                groups.append(command)
            elif isinstance(command, TyperCommand) and not command.hidden:
                found[name] = command
    return found
