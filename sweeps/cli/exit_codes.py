"""What the command's exit status means. 128 + N: it was ended by signal N."""

RUNS_FAILED = 1
"""Everything was tried, and some runs failed; or what was checked is damaged or in conflict."""

BAD_INPUT = 2
"""A mistake of the user's; nothing was written."""

UNAVAILABLE = 3
"""The database, the cluster or this machine cannot be used at the moment; what was committed is
intact."""

RUNS_LEFT = 4
"""Runs are left: another worker trains them, or their sweep was stopped."""

INTERRUPTED = 130
"""Ended by Ctrl-C."""
