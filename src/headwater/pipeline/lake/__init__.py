"""Lake tables: Parquet files that a chain of manifests makes one table, written exactly once."""
