"""Appending: what a leader checks, what a follower takes over, and the short way."""
