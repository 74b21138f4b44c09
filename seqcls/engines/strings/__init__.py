"""The plain models, string by string, without states that nothing reads."""
