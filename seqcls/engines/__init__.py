"""The engines that train models: one compiled, one stacked in PyTorch, behind one interface."""
