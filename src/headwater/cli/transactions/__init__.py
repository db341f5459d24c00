"""`headwater transactions`."""
