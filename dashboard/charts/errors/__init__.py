"""Charts of misclassified strings."""
