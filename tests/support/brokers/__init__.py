"""Real brokers for tests: in this process, as processes, and clusters of them."""
