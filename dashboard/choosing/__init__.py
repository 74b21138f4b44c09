"""Which run, strings and epoch a page is about, and the model that it opened."""
