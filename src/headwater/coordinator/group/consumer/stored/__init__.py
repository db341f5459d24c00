"""A consumer group as `__consumer_offsets` stores it."""
