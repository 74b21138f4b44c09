"""What is found out of stored runs: opened models, causes, suggestions, comparisons."""
