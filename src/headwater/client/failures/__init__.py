"""What becomes of a record that could not be handled: how it is sent on, and where to."""
