"""Where the `seqcls` command begins: it loads nothing before signals can end it quietly."""

import signal


def main() -> None:
    """Loads the command and runs it."""
    # Until it is loaded, Ctrl-C ends it as every other signal does: at once and in silence.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dashboard.cli import main as run

    run()
