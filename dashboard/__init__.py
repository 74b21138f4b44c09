"""The screen: pages that show the database, launch sweeps and steer them, and never train."""
