"""Causal architectures whose blocks mix tokens by a memory of a fixed size, one a file."""
