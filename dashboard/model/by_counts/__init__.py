"""The sections of the page Model that rest on letter counts."""
