"""`headwater elect-leaders`."""
