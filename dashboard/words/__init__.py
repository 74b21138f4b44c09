"""What pages call things: models, settings, errors, measures, and languages."""
