"""What only pages of the dashboard ask."""
