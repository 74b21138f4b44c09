"""The engines that train models behind one interface: one compiled, two in PyTorch."""
