"""What charts share: colors, scales, labels, pointing."""
