"""The indexes of a segment: offsets, timestamps, aborted transactions, hidden batches."""
