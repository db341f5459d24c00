"""`headwater topics`."""
