"""Proofs that a recurrent network is right on every string there is, and their refutations."""
