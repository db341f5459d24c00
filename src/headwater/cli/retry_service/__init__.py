"""`headwater retry-service`."""
