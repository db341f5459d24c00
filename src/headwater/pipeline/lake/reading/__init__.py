"""Reading versions of lake tables, and archived records in order."""
