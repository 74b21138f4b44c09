"""Tasks that are given by their strings: what is right of others is not known."""
