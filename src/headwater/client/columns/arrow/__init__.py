"""Columns as Arrow arrays and batches; only here is pyarrow needed."""
