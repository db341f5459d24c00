"""Record batches as columns: many records at once with numpy and Arrow, no object for each."""
