"""Processes of this program: how they begin, what they do beside their work, how they end."""
