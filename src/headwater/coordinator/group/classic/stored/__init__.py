"""A classic group as `__consumer_offsets` stores it, and what its members' bytes say."""
