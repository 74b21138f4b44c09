"""Entry point of the `seqcls` command: it loads nothing before signals can end it quietly."""

import signal
import sys

POSIX_ONLY = (
    "seqcls: it runs on Linux and macOS, whose signals and file locks sweeps need; on Windows, "
    "install and run it in WSL (https://learn.microsoft.com/windows/wsl)"
)


def main() -> None:
    """Loads the command and runs it."""
    if sys.platform == "win32":
        raise SystemExit(POSIX_ONLY)
    # Until it is loaded, Ctrl-C ends it as every other signal does: at once and in silence.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sweeps.processes import collect_seldom

    collect_seldom()
    from dashboard.cli import main as run

    run()
