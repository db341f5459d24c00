"""Simulated clients: they write, read, join groups and copy in transactions."""
