"""Page Results: the configurations that generalize, and where failing begins."""
