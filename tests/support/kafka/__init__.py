"""Apache Kafka for tests: nodes, clusters, data directories, settings."""
