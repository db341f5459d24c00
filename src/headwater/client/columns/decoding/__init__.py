"""From fetched bytes to columns, many batches at a time."""
