"""`headwater delay-service`."""
