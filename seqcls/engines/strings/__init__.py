"""The plain models, string by string, without what nobody reads of them."""
