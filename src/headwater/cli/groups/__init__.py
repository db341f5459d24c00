"""`headwater groups`."""
