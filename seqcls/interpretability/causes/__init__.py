"""Why errors are errors."""
