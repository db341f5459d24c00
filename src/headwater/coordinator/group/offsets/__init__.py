"""Committed offsets: commits, fetches, deletions, and how they are stored."""
