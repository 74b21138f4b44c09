"""Commands about what is kept: databases, data sets and the cache."""
