"""How sure shares, medians and differences are. Pure functions; no database."""
