"""Predictions of theory for a language and a network: can, cannot, or not known."""
