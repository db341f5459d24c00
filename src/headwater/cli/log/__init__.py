"""`headwater log`."""
