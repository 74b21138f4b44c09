"""The common parts of the compiled engines: compilation, its cache, training and AdamW."""
