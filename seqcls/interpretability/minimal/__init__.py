"""The smallest strings that fail, and the nearest that do not."""
