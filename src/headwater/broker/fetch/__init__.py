"""Fetch sessions, and the answers to fetches."""
