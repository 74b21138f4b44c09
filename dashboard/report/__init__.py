"""A sweep as one file that can be sent by mail: its table, charts and causes."""
