"""What a command, a page or a notebook can ask, a file a subject; `sweeps.api` names it all."""
