"""The dashboard's server: its first page, whom it answers, how it ends, what sessions share."""
