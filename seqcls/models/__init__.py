"""The models, one architecture a file: the readable truth, one string a row."""
