"""Which database is meant where none is named."""

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"
