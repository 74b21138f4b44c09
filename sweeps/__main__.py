"""`python -m sweeps` is the `seqcls` command."""

import signal
import sys

# Until the command is loaded, Ctrl-C ends it like every other signal: immediately and silently.
signal.signal(signal.SIGINT, signal.SIG_DFL)

if not sys.flags.safe_path:
    # Python would search the working directory first, which may contain any `array.py`.
    sys.path.append(sys.path.pop(0))

from sweeps.processes import collect_seldom  # noqa: E402 (only now is it safe)

collect_seldom()

from sweeps.cli.app import main  # noqa: E402 (after that it loads faster)

main()
