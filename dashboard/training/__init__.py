"""Pages Sweeps and New sweep: current training, and what to train next."""
