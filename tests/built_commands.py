"""All commands, built once: Typer builds them anew, in 7 ms, for each that a test runs."""

from functools import cache

import typer.main
import typer.testing

import dashboard.cli  # noqa: F401 # adds the last of them

typer.main.get_command = cache(typer.main.get_command)
typer.testing._get_command = typer.main.get_command  # type: ignore[attr-defined]
