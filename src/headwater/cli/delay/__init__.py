"""`headwater delay`: messages that wait for their time."""
