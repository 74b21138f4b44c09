"""dashboard.choosing."""
