"""`python -m sweeps` is the `seqcls` command."""

from sweeps.cli import main

main()
