"""dashboard.views."""
