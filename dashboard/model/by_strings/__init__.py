"""The sections of the page Model that run strings, of any model."""
