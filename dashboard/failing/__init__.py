"""Why models fail and what would help: sections of the pages on failing models."""
