"""`headwater metrics`."""
