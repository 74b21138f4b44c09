"""The figures of a one-block model of which letter counts give an account."""
