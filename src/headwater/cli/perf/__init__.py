"""`headwater perf`."""
