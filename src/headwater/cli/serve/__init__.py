"""`headwater serve`."""
