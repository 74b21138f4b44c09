"""The database that is used where none is named."""

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"
