"""Values that tests need: batches, images, requests, strategies."""
