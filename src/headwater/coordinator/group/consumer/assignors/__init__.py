"""How a consumer group's partitions are dealt out among its members."""
