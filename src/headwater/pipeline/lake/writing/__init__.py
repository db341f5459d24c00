"""Writing batches to lake tables: appended, merged, archived."""
