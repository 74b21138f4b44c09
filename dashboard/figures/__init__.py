"""The figures of one model: what strings do in it, after any stored epoch."""
