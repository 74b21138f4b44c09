"""How does a small Transformer fail? The report's argument with the models of a database."""
