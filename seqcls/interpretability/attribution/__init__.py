"""What each part of a model adds to a logit."""
