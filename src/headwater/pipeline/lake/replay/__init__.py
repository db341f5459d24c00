"""Archived records sent to a topic again."""
