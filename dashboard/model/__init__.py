"""The parts of the page that looks inside one model, in the order in which they stand on it."""
