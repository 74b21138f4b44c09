"""What charts share: colors, scales, labels, heights, pointing."""
