"""`headwater demo`."""
