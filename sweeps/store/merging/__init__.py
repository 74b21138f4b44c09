"""Taking over what another database holds."""
