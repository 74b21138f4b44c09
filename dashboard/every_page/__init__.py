"""What every page has around it: filters, header, keys, and what is said of damage."""
