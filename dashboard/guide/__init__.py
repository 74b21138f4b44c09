"""The parts of the page that tells the argument of the shipped models, step by step."""
