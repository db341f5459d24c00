"""`headwater completion`, and the words that a shell asks about."""
