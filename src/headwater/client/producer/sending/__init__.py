"""Batches on their way to leaders, and what becomes of each."""
