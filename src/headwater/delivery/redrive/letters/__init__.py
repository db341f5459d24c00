"""Dead letters of any family: read, chosen, and kept in files."""
