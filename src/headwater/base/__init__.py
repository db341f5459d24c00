"""What every other layer stands on; it imports nothing but the standard library."""
