"""From columns to the records sections of batches."""
