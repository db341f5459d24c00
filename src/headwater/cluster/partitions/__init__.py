"""Leaders and in-sync replicas of partitions: elections, moves, alterations."""
