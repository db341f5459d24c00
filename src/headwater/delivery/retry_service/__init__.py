"""The retry service: what failed waits and comes back, or is given up, on any Kafka."""
