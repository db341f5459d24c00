"""`headwater configs`."""
