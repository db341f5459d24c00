"""`headwater reassign`."""
