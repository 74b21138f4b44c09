"""The book-keeping of sweeps: which models, who trains them, what came out."""
