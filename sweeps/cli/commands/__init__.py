"""What the commands do, and how they show it; `sweeps.cli.app` declares them."""
