"""What is trained, and what to train next."""
