"""What every page has around it: filters, sidebar, header, keys, and what is said of damage."""
