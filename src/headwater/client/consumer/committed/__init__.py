"""Committed offsets: the requests, and who commits when."""
