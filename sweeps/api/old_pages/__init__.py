"""What only pages ask."""
