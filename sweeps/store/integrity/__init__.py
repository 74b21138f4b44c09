"""What of a damaged or foreign file can be trusted."""
