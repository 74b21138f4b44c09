"""The `seqcls` command: arguments, the question that is asked, and how its answer is shown."""
