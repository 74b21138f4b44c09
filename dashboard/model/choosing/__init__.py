"""Which run, which strings and which epoch the page is about: all of it in the address bar."""
