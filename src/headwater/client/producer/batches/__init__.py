"""Records gathered into batches, and the futures of those who sent them."""
