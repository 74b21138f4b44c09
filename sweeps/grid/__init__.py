"""Which models a sweep asks for: specifications, what they mean, groups of one shape."""
