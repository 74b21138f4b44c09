"""The panel that launches a sweep: a shipped one, or one of your own."""
