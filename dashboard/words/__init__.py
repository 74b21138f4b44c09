"""Words of pages: models, settings, errors, measures, and languages."""
