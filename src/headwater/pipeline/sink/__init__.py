"""Writing from Spark: rows to records, at least once, or exactly once in two phases."""
