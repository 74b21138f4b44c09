"""Why a trained model answers as it does."""
