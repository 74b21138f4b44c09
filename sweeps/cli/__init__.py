"""The `seqcls` command: arguments, calls of the API, and printed answers."""
