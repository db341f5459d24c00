"""`headwater pipeline`."""
