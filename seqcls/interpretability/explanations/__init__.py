"""Why a model answers one string as it does."""
