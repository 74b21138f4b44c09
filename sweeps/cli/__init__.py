"""The `seqcls` command: one file a panel of its help, and what the commands do in `commands`."""
