"""Brokers that come, go and fail."""
