"""The commands that write, read and delete records, and look up offsets."""
