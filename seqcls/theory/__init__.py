"""What theory says of a language and a network: can, cannot, or not known."""
