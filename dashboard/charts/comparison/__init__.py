"""Charts of many models side by side."""
